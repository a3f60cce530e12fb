"""Is this storage good enough? A need in the words of a purpose, the load that it makes, and the answer."""
