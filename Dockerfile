# The program in a container:    docker build --target core -t sqa .      or --target full: every extra but Debian's programs
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" sqa run mine.yaml
FROM python:3.11-slim AS core
COPY . /src
RUN pip install --no-cache-dir --no-deps --require-hashes -r /src/requirements.lock && \
    pip install --no-cache-dir -r /src/requirements-torch.lock && \
    pip install --no-cache-dir --no-deps /src /src/services && \
    useradd --no-create-home sqa
# any user that `--user` names can write there
ENV HOME=/tmp
WORKDIR /work
USER sqa
ENTRYPOINT ["sqa"]

FROM core AS full
USER root
RUN pip install --no-cache-dir --no-deps --require-hashes -r /src/requirements-extras.lock
USER sqa
