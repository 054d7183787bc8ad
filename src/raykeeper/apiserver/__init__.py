"""Program: REST and gRPC in front of the custom resources."""
