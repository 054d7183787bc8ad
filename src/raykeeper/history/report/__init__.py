"""Why a job or a session failed: failures in groups, their causes with the evidence, and what nobody can know."""
