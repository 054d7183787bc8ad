"""The application that `serve_bad_import` deploys."""

from ray import serve
from sentencepeace import SentencePieceProcessor


@serve.deployment
class Translator:
    def __init__(self):
        self.pieces = SentencePieceProcessor()


app = Translator.bind()
