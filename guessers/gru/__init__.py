"""The GRU guesser: a recurrent classifier over pages."""
