# The program in a container:    docker build --target core -t sqa .      or --target full: every extra but Debian's programs
#   docker run --rm -v "$PWD:/work" sqa run mine.yaml
FROM python:3.11-slim AS core
COPY . /src
RUN pip install --no-cache-dir /src
WORKDIR /work
ENTRYPOINT ["sqa"]

FROM core AS full
RUN pip install --no-cache-dir /src/services "/src[all]"
