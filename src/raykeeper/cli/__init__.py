"""The command line: one typer app that imports a program only when it is asked for."""
