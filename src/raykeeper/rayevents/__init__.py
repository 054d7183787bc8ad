"""Ray's exported events as data: shapes, ids, order of states. Shared by collector and history."""
