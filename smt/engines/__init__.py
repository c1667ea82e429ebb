"""External systems as translators: transformers, fairseq, Moses, commands, recorded outputs."""
