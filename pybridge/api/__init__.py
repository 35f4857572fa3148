"""The functions of the public face."""
