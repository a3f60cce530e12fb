"""Steps of the schema, oldest first. A step that was released is never changed: a new one is added."""
