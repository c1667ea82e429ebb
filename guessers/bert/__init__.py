"""The BERT guesser: a pretrained encoder and a head over pages."""
