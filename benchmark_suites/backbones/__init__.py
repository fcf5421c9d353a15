"""One model of each of timm's modules: whether it can be trained, and which detectors apply."""
