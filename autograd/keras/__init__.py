"""Keras: models in three lines, on the same layers and the same tape."""
