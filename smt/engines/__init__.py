"""External systems as translators: transformers, CTranslate2, fairseq, Moses, commands, recorded outputs."""
