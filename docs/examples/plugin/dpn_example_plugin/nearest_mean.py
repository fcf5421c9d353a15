"""A detector of features that is fitted."""

import torch
from pytorch_ood.api import (
    DetectorInfo,
    FeaturesDetector,
    ModelNotSetException,
    RequiresFittingException,
    Task,
)
from pytorch_ood.utils import extract_features


class NearestMean(FeaturesDetector):
    """Distance of the features to the nearest mean of a class: a larger score is more OOD."""

    requires_fit = True
    info = DetectorInfo(tasks={Task.CLASSIFICATION})

    def __init__(self, encoder=None):
        """
        :param encoder: a function from inputs to features B x D; dpn-plugin passes that of any
            timm model, ``None`` is enough to fit and score features
        """
        super().__init__()
        self.encoder = encoder
        self.means = None

    def fit(self, data_loader):
        """
        Fit the means to a data loader, and return the detector.

        :param data_loader: yields batches (inputs, labels); labels below 0 are OOD, not used
        """
        if self.encoder is None:
            raise ModelNotSetException
        return self.fit_features(*extract_features(data_loader, self.encoder, self.device))

    def fit_features(self, x, y):
        """
        Fit the means to features, and return the detector. ``dpn bench`` calls this one.

        :param x: shape N x D
        :param y: labels of shape N
        """
        self.means = torch.stack([x[y == label].mean(dim=0) for label in y[y >= 0].unique()])
        return self

    def predict(self, x):
        """
        Return scores of shape B.

        :param x: inputs of the model
        """
        if self.encoder is None:
            raise ModelNotSetException
        return self.predict_features(self.encoder(x))

    def predict_features(self, x):
        """
        Return scores of shape B.

        :param x: features of shape B x D
        """
        if self.means is None:
            raise RequiresFittingException
        # no matrix product, whose rounding depends on the size of the batch
        means = self.means.to(x)
        mode = "donot_use_mm_for_euclid_dist"
        return torch.cdist(x, means, compute_mode=mode).amin(dim=1)
