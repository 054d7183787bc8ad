"""What each call does: validate, translate, ask Kubernetes or a Ray head. Knows neither gRPC nor HTTP."""
