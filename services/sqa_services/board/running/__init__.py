"""How a model that runs here is made to answer."""
