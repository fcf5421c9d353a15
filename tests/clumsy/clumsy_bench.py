"""Clumsy uses of ``dpn bench`` and ``dpn suite``."""

from clumsy_campaign import Case, done, refused

_BENCH = "--device cpu --limit 60"
POINTS = f"bench points.toml {_BENCH}"
PICTURES = f"bench pictures.toml {_BENCH}"


def _points(options: str, says: str, **env: str) -> Case:
    return refused(f"{POINTS} --out new {options}", says, **env)


def _suite(name: str, says: str) -> Case:
    return refused(f"bench {name}.toml {_BENCH} --out new", says)


def _dry(options: str, says: str, **env: str) -> Case:
    return done(f"{options} --dry-run", says, writes="", **env)


def _no_plan(options: str, says: str, **env: str) -> Case:
    return refused(f"{options} --dry-run", says, **env)


NAMES = [
    refused("bench digit", "Did you mean 'digits'?"),
    refused("bench ''", "Unknown suite ''"),
    refused("bench no-such.toml", "There is no suite file 'no-such.toml'"),
    refused("bench ./no-such.toml", "There is no suite file './no-such.toml'"),
    refused("bench photos/", "photos/"),
    refused("bench notes.txt", "notes.txt"),
    refused("bench points", "Unknown suite 'points'"),
    _points("--methods basline", "Did you mean 'baseline'?"),
    _points("--methods baseline,dpn-minsu", "Did you mean 'dpn-minus'?"),
    _points("--methods oe,dpn-minus", "no outliers to train with"),
    _points("--detectors dpn-mii", "Did you mean 'dpn-mi'?"),
    _points("--detectors 'dpm-*'", "No detector matches 'dpm-*'"),
    _points("--detectors dpn-mi,msq", "Did you mean 'msp', 'mls' or 'mds'?"),
    _points("--detectors '[z-a'", "No detector matches '[z-a'"),
    _points("--backbone mlp_syntetic", "Did you mean 'mlp_synthetic'"),
    _points("--backbone mlp_synthetic,tset_resnet", "Did you mean 'test_resnet'"),
    _points("--executor lokal", "Did you mean 'local'?"),
    _points("--executor ray --jobs 2", "--jobs belongs to --executor local"),
    _points("--ray-gpus 1", "belong to --executor ray"),
    _points("--ray-address 127.0.0.1:1", "belong to --executor ray"),
    _points("--device gpu", "device 'gpu' cannot be used"),
    _points("--jobs 2", "Start them with torchrun", WORLD_SIZE="2", RANK="0", LOCAL_RANK="0"),
    _points("--again no-such-thing", "no-such-thing"),
]

NUMBERS = [
    _points("--seeds 0", "--seeds"),
    _points("--seeds -3", "--seeds"),
    _points("--seeds 1e3", "--seeds"),
    _points("--seeds 100000000", "at most 1000"),
    _points("--epochs 0", "--epochs"),
    _points("--epochs 99999999999999", "epochs"),
    _points("--limit 0", "--limit"),
    _points("--limit 1", "too few samples (1)"),
    _points("--jobs 0", "--jobs"),
    _points("--jobs 99999", "--jobs"),
    _points("--workers 0", "--workers"),
    _points("--ray-gpus=-1", "--ray-gpus"),
]

SUITES = [
    _suite("table-typo", "Did you mean 'in_domain'"),
    _suite("source-typo", "Did you mean 'source'?"),
    _suite("classes-typo", "Did you mean 'classes'?"),
    _suite("train-typo", "Did you mean 'epochs'?"),
    _suite("backbone-typo", "Did you mean 'mlp_synthetic'"),
    _suite("recipe-typo", "Did you mean 'synthetic'?"),
    _suite("method-typo", "Did you mean 'baseline'?"),
    _suite("detector-typo", "Did you mean 'dpn-mi'?"),
    _suite("scheme-typo", "Did you mean 'synthetic'?"),
    _suite("class-typo", "Did you mean 'two'?"),
    _suite("size-of-two", "[channels, size, size]"),
    _suite("size-of-zero", "[channels, size, size]"),
    _suite("no-title", "title is missing."),
    _suite("no-tests", "There are no OOD test sets"),
    _suite("no-name", "every set needs a name"),
    _suite("no-backbone", "train.backbone is missing."),
    _suite("no-seeds", "seeds: "),
    _suite("seeds-text", "seeds: "),
    _suite("many-epochs", "epochs: "),
    _suite("not-toml", "not-toml.toml is not valid TOML"),
    _suite("empty", "is missing."),
    _suite("binary", "binary.toml cannot be read"),
    _suite("same-data", "come from one data set"),
    _suite("missing-data", "folder:no-such-folder"),
    _suite("images-for-points", "test_resnet"),
    _suite("points-for-images", "8x8 pixels"),
]

FOLDERS = [
    refused(f"{POINTS} --out photos", "IMG_0.png"),
    refused(f"{POINTS} --out results", "leaderboard.csv"),
    refused(f"{POINTS} --out table", "results.csv"),
    refused(f"{POINTS} --out report-only", "report.html"),
    refused(f"{POINTS} --out history", "history"),
    refused(f"{POINTS} --out .", "is not empty and holds no benchmark"),
    refused(f"{POINTS} --out image-run", "image-run"),
    refused(f"{POINTS} --out notes.txt", "notes.txt"),
    refused(f"{POINTS} --out points.toml", "points.toml"),
    refused(f"{POINTS} --out notes.txt/x", "notes.txt"),
    refused(f"{POINTS} --out /dev/null/x", "Cannot write"),
    refused(f"{POINTS} --out bench --epochs 2", "recipe.epochs: 1 -> 2"),
    _points("--only-eval no-such-run", "holds no trained run"),
    _points("--only-eval photos", "holds no trained run"),
    _points("--only-eval notes.txt", "holds no trained run"),
    _points("--only-eval half-run", "run.json is damaged"),
    _points("--only-eval image-run", "was trained on folder:digits"),
    _points("--only-eval empty", "holds no trained run"),
]

MISSING = [
    refused("bench fashion --out new", "torchvision:FashionMNIST"),
    refused("bench fashion --out new --data-root no-such-folder", "EMNIST"),
    refused("bench c10 --out new --data-root notes.txt", "notes.txt"),
    refused("bench openood-cifar10 --out new", "download.py"),
    refused("bench fashion --out new", "elsewhere", DPN_DATA_ROOT="elsewhere"),
    _no_plan("bench fashion --out new", "torchvision:FashionMNIST"),
    _no_plan("bench missing-data.toml --out new", "no-such-folder"),
    _no_plan("bench images-for-points.toml --out new", "test_resnet"),
    _no_plan("bench table-typo.toml --out new", "Did you mean 'in_domain'"),
    _no_plan("bench points.toml --out new --detectors nonsense", "Unknown detector 'nonsense'"),
    _no_plan("bench points.toml --out photos", "IMG_0.png"),
    _no_plan("bench points.toml --only-eval no-such-run", "holds no trained run"),
    refused("bench fashion --out new --skip-missing", "torchvision:FashionMNIST"),
]

USAGE = [
    refused("bench", "Missing argument"),
    refused("bench points.toml pictures.toml", "unexpected extra argument"),
    _points("--method baseline", "--methods"),
    _points("--seed 3", "--seeds"),
    _points("--force", "No such option: --force"),
    _points("--set epochs=3", "No such option: --set"),
    _points("--limit", "requires an argument"),
]

RESULTS = [
    _dry(f"{POINTS} --out new", "2 of 2 detectors"),
    _dry(f"{POINTS} --out bench", "reuse"),
    _dry(f"{POINTS}", "2 of 2 detectors"),
    _dry(f"{POINTS} --out new --methods BASELINE,baseline,baseline", "1 runs"),
    _dry(f"{POINTS} --out new --methods baseline,oe", "Left out: oe"),
    _dry(f"{POINTS} --out new --detectors 'dpn-m*'", "dpn-maxp, dpn-mi"),
    _dry(f"{POINTS} --out new --detectors all", "mahalanobis"),
    _dry(f"{POINTS} --out new --seeds 2 --seeds 3", "3 runs"),
    _dry(f"{POINTS} --out new", "2 of 2 detectors", DPN_PLUGINS="no-such-plugin"),
    _dry("bench digits --out new", "Detectors:"),
    _dry("bench missing-data.toml --out new --skip-missing", "no-such-folder"),
    done(f"{POINTS} --out bench", "Results: bench/results.csv", writes=""),
    done(f"{POINTS} --out bench --detectors dpn-mi", "Results:", writes="bench"),
    done(f"{POINTS} --out 'new/my bench'", "Results: new/my bench/results.csv"),
    done(f"{POINTS} --only-eval point-run --out new", "Results: new/results.csv"),
    done(f"{PICTURES} --out new --detectors dpn-maxp,knn", "Results: new/results.csv"),
    done(f"bench missing-data.toml {_BENCH} --skip-missing --out new", "no-such-folder"),
    done("bench --help", "Train and compare", writes=""),
]

SUITE_COMMAND = [
    done("suite show digits", "[in_domain]", writes=""),
    done("suite show points.toml", "synthetic:gaussians", writes=""),
    done("suite copy digits new.toml", "new.toml", writes="new.toml"),
    done("suite copy digits 'new/my suite.toml'", "my suite.toml"),
    refused("suite show digts", "Did you mean 'digits'?"),
    refused("suite copy digts new.toml", "Did you mean 'digits'?"),
    refused("suite copy digits points.toml", "points.toml"),
    refused("suite copy digits photos", "photos"),
    refused("suite copy digits notes.txt", "notes.txt"),
    refused("suite copy digits /dev/null/x.toml", "/dev/null/x.toml"),
    refused("suite copy digits", "copy needs the file to write"),
    refused("suite show", "Missing argument"),
    refused("suite shwo digits", "show"),
]

CASES = [
    *NAMES, *NUMBERS, *SUITES, *FOLDERS, *MISSING, *USAGE, *RESULTS, *SUITE_COMMAND,
]  # fmt: skip
