"""The rerank guesser: retrieval's best pages, ordered anew by what kind of thing is asked for and what is named."""
