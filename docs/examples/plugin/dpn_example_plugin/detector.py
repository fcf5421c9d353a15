"""A detector of logits."""

from pytorch_ood.api import DetectorInfo, LogitsDetector, Task


class LogitMargin(LogitsDetector):
    """Minus the difference of the two largest logits: a larger score is more OOD."""

    info = DetectorInfo(tasks={Task.CLASSIFICATION, Task.SEGMENTATION})

    def __init__(self, model=None):
        """
        :param model: returns logits; dpn-plugin passes any timm model
        """
        super().__init__()
        self.model = model

    def predict_logits(self, logits):
        """
        Return scores of shape B, or B x H x W.

        :param logits: shape B x K, or B x K x H x W
        """
        first, second = logits.topk(2, dim=1).values.unbind(dim=1)
        return second - first
