"""Clumsy uses of ``dpn train``."""

from clumsy_campaign import Case, done, refused

_TRAIN = "train --epochs 1 --device cpu --method baseline"
#: images of folders, without --out
IMAGES = f"{_TRAIN} --backbone test_resnet --in-domain folder:digits"
#: points in the plane, without --out
POINTS = (
    f"{_TRAIN} --backbone mlp_synthetic --recipe synthetic --limit 60"
    " --in-domain synthetic:gaussians"
)


def _images(options: str, says: str, **env: str) -> Case:
    return refused(f"{IMAGES} --out new {options}", says, **env)


def _points(options: str, says: str, **env: str) -> Case:
    return refused(f"{POINTS} --out new {options}", says, **env)


def _source(source: str, says: str) -> Case:
    return _images(f"--in-domain '{source}'", says)


def _out(options: str, says: str) -> Case:
    return refused(f"{IMAGES} {options}", says)


NAMES = [
    _points("--method basline", "Unknown method 'basline'. Did you mean 'baseline'?"),
    _points("--method ''", "Unknown method ''"),
    _points("--method baseline,oe", "Unknown method 'baseline,oe'"),
    _points("--method msp", "Unknown method 'msp'"),
    _points("--backbone mlp_syntetic", "Did you mean 'mlp_synthetic'"),
    _images("--backbone tset_resnet", "Did you mean 'test_resnet'"),
    _images("--backbone resnet", "Did you mean"),
    _points("--recipe sinthetic", "Did you mean 'synthetic'?"),
    _images("--stem tiny", "'small'"),
    _points("--device gpu", "device 'gpu' cannot be used"),
    _points("--device cuda:99", "device 'cuda:99' cannot be used"),
    _images("--pretrained", "test_resnet"),
    _points("--pretrained", "mlp_synthetic"),
]

SOURCES = [
    _source("digits", "'scheme:argument'"),
    _source("folder:", "'scheme:argument'"),
    _source("", "'scheme:argument'"),
    _source("folders:digits", "Did you mean 'folder'?"),
    _source("folder:digit", "folder:digit was not found"),
    _source("folder:notes.txt", "is not a folder"),
    _source("folder:empty", "holds no images"),
    _source("folder:flat", "has no class subfolders"),
    _source("folder:only-hidden", "holds no images"),
    _source("folder:one-class", "at least 2 classes, not 1"),
    _source("folder:empty-class", "dog"),
    _source("folder:text-class", "'cat' or 'dog' holds no images"),
    _source("folder:broken", "IMG_0.png is not a readable image"),
    _source("npz:digits", "is not a file"),
    _source("npz:no-such.npz", "npz:no-such.npz was not found"),
    _source("npz:notes.txt", "is not an .npz file"),
    _source("npz:broken.npz", "broken.npz is damaged"),
    _source("npz:other-keys.npz", "no array 'images', only ['x', 'y']"),
    _source("npz:short-labels.npz", "labels"),
    _source("npz:float.npz", "uint8"),
    _source("npz:none.npz", "has no samples"),
    _source("npz:one.npz", "at least 2 classes, not 1"),
    _source("npz:unlabelled.npz", "no label"),
    _source("npz:digits.npz?split=test", "has no splits"),
    _source("folder:digits?split=test", "was not found"),
    _source("folder:digits?classes=four", "Unknown class"),
    _source("folder:digits?classes=zer,one", "Did you mean 'zero'?"),
    _source("folder:digits?classes=0-9", "its 4 classes go from 0 to 3"),
    _source("folder:digits?classes=3-1", "must not be below the first"),
    _source("folder:digits?classes=", "Unknown class"),
    _source("folder:digits?classes", "must read key=value"),
    _source("folder:digits?clases=zero,one", "Did you mean 'classes'?"),
    _source("folder:digits?limit=0", "greater than or equal to 1"),
    _source("folder:digits?limit=-5", "greater than or equal to 1"),
    _source("folder:digits?limit=ten", "valid integer"),
    _source("folder:digits?limit=1", "too few samples (1)"),
    _source("folder:digits?root=/etc", "has no option 'root'"),
    _source("torchvision:MNST", "Did you mean 'MNIST'"),
    _source("torchvision:MNIST", "torchvision:MNIST was not found"),
    _source("sklearn:digit", "digits"),
    _source("sklearn:photograph/chin", "china"),
    _source("synthetic:gaussian", "gaussians"),
    _source("pytorch_ood:UniformNose/5", "Did you mean"),
    _source("pytorch_ood:UniformNoise/0", "UniformNoise"),
    _source("openood:cifar10", "cifar10"),
]

NUMBERS = [
    _points("--limit 0", "--limit"),
    _points("--limit -1", "--limit"),
    _points("--limit ten", "--limit"),
    _points("--limit 1", "too few samples (1)"),
    _points("--epochs 0", "--epochs"),
    _points("--epochs -1", "--epochs"),
    _points("--epochs 1.5", "--epochs"),
    _points("--epochs nan", "--epochs"),
    _points("--epochs 99999999999999", "epochs"),
    _points("--seed -1", "--seed"),
    _points("--seed 99999999999", "--seed"),
    _points("--batch-size 0", "--batch-size"),
    _points("--workers 0", "--workers"),
    _images("--image-size 0", "--image-size"),
    _images("--image-size 99999", "image_size"),
    _points("--lr 0", "lr"),
    _points("--lr=-1", "lr"),
    _points("--lr nan", "lr"),
    _points("--lr inf", "lr"),
    _points("--lr fast", "--lr"),
]

ASSIGNMENTS = [
    _points("--set lr", "--set takes key=value, not 'lr'."),
    _points("--set =3", "--set takes key=value, not '=3'."),
    _points("--set learning_rate=0.1", "Unknown training option 'learning_rate'"),
    _points("--set lr=fast", "lr: "),
    _points("--set lr=nan", "lr: "),
    _points("--set epoch=3", "Did you mean 'epochs'?"),
    _points("--set epochs=99999999999999", "epochs: "),
    _points("--set augmentation=3", "augmentation: "),
    _points("--set augmentation.filp=true", "Did you mean 'flip' or 'fill'?"),
    _points("--set schedule.sched=cosin", "schedule.sched: "),
    _points("--set drop_rate=1.5", "drop_rate: "),
    _points("--set hold_out=1", "hold_out: "),
    _points("--set optimizer=adamm", "adamm"),
    _points("--set lr=0.1 --set lr.x=1", "lr"),
    _points("-o members=3", "has no option"),
    _points("-o lambda_out", "--option takes key=value, not 'lambda_out'."),
    _points("-o a.b=1", "'a' has no options of its own"),
    _points("--method deep-ensemble -o members=0", "members"),
    _points("--method deep-ensemble -o members=many", "members"),
    _points("--method deep-ensemble -o member=2", "Did you mean 'members'?"),
    _points("--method dpn-minus -o lambda_oot=0 --outliers synthetic:gaussians-ood", "lambda_out"),
    _points("--method cac -o magnitud=3", "Did you mean 'magnitude'?"),
    _points("--method logit-norm -o t=warm", "t must be a finite number, not 'warm'"),
    _points(
        "--method vos -o sample_number=few", "sample_number must be a finite number, not 'few'"
    ),
    _images("--method pixmix -o bta=3", "Did you mean 'beta'?"),
    _images("--method pixmix -o k=0", "k must be a whole number of 1 or more, not 0"),
]

LAUNCHERS = [
    _points("", "Start them with torchrun", WORLD_SIZE="2", RANK="0", LOCAL_RANK="0"),
    _points("", "Start them with torchrun", WORLD_SIZE="two"),
    _points("", "Start them with torchrun", SLURM_NTASKS="2", SLURM_PROCID="0", SLURM_LOCALID="0"),
    _points("--method basline", "Process 3: Error: Unknown method 'basline'", RANK="3"),
]

MISMATCHES = [
    _points("--method dpn-minus", "Methods that need none"),
    _points("--method energy-ft", "'energy-ft' needs outliers to train with"),
    _points("--method pixmix", "it mixes images with fractals, not points"),
    _points("--method scone", "No method trains with the loss 'energy-margin' of pytorch-ood"),
    _points("--method oe --outliers folder:nowhere", "folder:nowhere was not found"),
    _images("--method oe --outliers folder:digits", "digits"),
    _images("--method oe --outliers synthetic:gaussians-ood", "holds points"),
    _images("--method mcdp", "--set drop_rate=0.5"),
    _images("--backbone mlp_synthetic", "8x8 pixels"),
    _points("--backbone test_resnet", "test_resnet"),
]

FOLDERS = [
    _out("--out photos", "IMG_0.png"),
    _out("--out photos --force", "IMG_0.png"),
    _out("--out history", "checkpoints"),
    _out("--out history --force", "checkpoints"),
    _out("--out results", "leaderboard.csv"),
    _out("--out digits", "digits"),
    _out("--out 'my photos'", "my photos"),
    _out("--out .", "is not empty and holds no run"),
    _out("--out ''", "is not empty and holds no run"),
    _out("--out notes.txt", "notes.txt"),
    _out("--out digits.npz --force", "digits.npz"),
    _out("--out notes.txt/run", "notes.txt"),
    _out("--out /dev/null/run", "Cannot write"),
    _out("--out /proc/run", "/proc/run"),
    _out("--out half-run", "run.json is damaged"),
    _out("--out newer-run", "update dpn-plugin"),
    _out("--out bench", "bench"),
    _out("--out image-run --seed 7", "seed: 0 -> 7"),
    _out("--out point-run", "holds another run"),
]

USAGE = [
    refused("train", "Missing option"),
    refused(IMAGES, "Missing option '--out'"),
    refused("train --method baseline --out new", "Missing option"),
    _points("--seeds 3", "No such option: --seeds"),
    _points("--detectors msp", "No such option: --detectors"),
    _points("--dry-run", "No such option: --dry-run"),
    _points("--epoch 3", "--epochs"),
    _points("digits", "unexpected extra argument"),
    _points("--set", "requires an argument"),
]

RESULTS = [
    done(f"{POINTS} --out new --json", '"epoch": 1'),
    done(f"{POINTS} --out 'new/ünï çødé \"quoted\"' --method BASELINE", "on held-out data"),
    done(f"{POINTS} --out new --epochs 3 --epochs 1", "epoch 1"),
    done(f"{POINTS} --out empty", "on held-out data", writes="empty"),
    done(f"{POINTS} --out new --outliers synthetic:gaussians-ood", "outliers"),
    done(f"{POINTS} --out new --data-root no-such-folder", "on held-out data"),
    done(f"{POINTS} --out new", "on held-out data", DPN_PLUGINS="no-such-plugin"),
    done(f"{IMAGES} --out image-run", "on held-out data", writes=""),
    done(f"{IMAGES} --out half-run --force", "on held-out data", writes="half-run"),
    done(f"{IMAGES} --out new --backbone test_vit --set image_size=7", "on held-out data"),
    done(f"{IMAGES} --out new --in-domain 'folder:my photos'", "on held-out data"),
    done(f"{IMAGES} --out new --in-domain folder:hidden", "on held-out data"),
    done(f"{IMAGES} --out new --in-domain npz:./digits.npz?classes=0,1 --lr 0.001", "held-out"),
    done(f"{IMAGES} --out new --method oe --outliers folder:colours", "on held-out data"),
    done("train --help", "Train a backbone", writes=""),
]

CASES = [
    *NAMES, *SOURCES, *NUMBERS, *ASSIGNMENTS, *LAUNCHERS, *MISMATCHES, *FOLDERS,
    *USAGE, *RESULTS,
]  # fmt: skip
