"""Trained runs in use: scores of single images."""

from dpn_plugin.deploy.score import score_images

__all__ = ["score_images"]
