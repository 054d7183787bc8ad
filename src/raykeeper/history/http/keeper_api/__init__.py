"""Our own JSON API, `/api/keeper/v1/`: one table of operations, from which come the routes and the OpenAPI document."""
