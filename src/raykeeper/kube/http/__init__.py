"""Requests and answers: what is sent, when it may be sent, what an answer means."""
