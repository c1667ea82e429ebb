"""BM25 by an Elasticsearch server."""
