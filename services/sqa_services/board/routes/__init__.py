"""The board's routes: what everybody may read, what its owner or the organiser may change, who takes part."""
