"""The server: routes, access, errors, and below it one folder for each API and one for the pages."""
