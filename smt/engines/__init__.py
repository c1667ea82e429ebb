"""Systems of others as translators: transformers, CTranslate2, fairseq, Moses, commands, recorded outputs."""
