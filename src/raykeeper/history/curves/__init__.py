"""What nodes used over time: of a session, of a node, of the nodes of a job; and the hours that makes."""
