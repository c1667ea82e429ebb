"""Step-wise errors of wait-k translations: detection, selection of examples, and figures."""
