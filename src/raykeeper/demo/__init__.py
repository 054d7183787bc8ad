"""`raykeeper demo`: a Ray that dies and is remembered, on one machine. Starts the programs as child processes."""
