"""Weights and vocabularies of bundled models, compressed by zstd: model.safetensors.zst, vocabulary.model.zst.

Training runs write plain files.  Digests use the unpacked bytes, so packing a model changes no store key.
"""

from pathlib import Path

from sqa.core.errors import DataError
from sqa.core.packages import need

MAX_RATIO = 16  # limit of unpacked over packed size; int8 and float16 weights reach 1.2, a vocabulary 2.4


def unpack(file: Path) -> bytes:
    """Return the unpacked bytes of a file.

    Raises:
        DataError: The file is damaged, states no size, or unpacks to more than MAX_RATIO times its own size.
    """
    need("zstandard", str(file))
    import zstandard

    data = file.read_bytes()
    try:
        if not 0 <= zstandard.frame_content_size(data) <= MAX_RATIO * len(data):
            raise DataError(f"{file}: states no size, or unpacks to over {MAX_RATIO} times its own size; restore it")
        return zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise DataError(f"{file}: the model is damaged ({error}); restore or train it again") from error
