"""The only code that talks to an identity provider (OpenID Connect)."""
