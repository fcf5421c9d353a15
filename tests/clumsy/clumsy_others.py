"""Clumsy uses of the commands that train nothing."""

from clumsy_campaign import Case, done, refused
from clumsy_train import POINTS

_SCORE = "score --run image-run --device cpu"


def _score(options: str, says: str) -> Case:
    return refused(f"{_SCORE} {options}", says)


def _shows(line: str, says: str, **env: str) -> Case:
    return done(line, says, writes="", **env)


SCORE = [
    refused("score", "Missing"),
    refused("score digits.npz", "dpn score takes either --bundle or --run"),
    refused(_SCORE, "Missing argument"),
    refused("score --run no-such-run digits", "no-such-run holds no trained run"),
    refused("score --run photos digits", "holds no trained run"),
    refused("score --run notes.txt digits", "holds no trained run"),
    refused("score --run bench digits", "holds no trained run"),
    refused("score --run half-run digits", "run.json is damaged"),
    refused("score --run newer-run digits", "update dpn-plugin"),
    refused("score --run point-run --device cpu digits", "trained on points"),
    _score("no-such.png", "There is no image or folder no-such.png."),
    _score("no-such.npz", "no-such.npz was not found"),
    _score("empty", "The folder empty holds no images."),
    _score("text-class", "holds no images"),
    _score("only-hidden", "holds no images"),
    _score("notes.txt", "is not a readable image"),
    _score("broken", "is not a readable image"),
    _score("broken.npz", "broken.npz is damaged"),
    _score("other-keys.npz", "no array 'images'"),
    _score("none.npz", "no samples"),
    _score("float.npz", "uint8"),
    _score("photos --detector dpn-mii", "Did you mean 'dpn-mi'?"),
    _score("photos --detector mahalanobis", "needs more of the network than its logits"),
    _score("photos --detector 'dpn-*'", "Unknown detector 'dpn-*'"),
    _score("photos --device gpu", "device 'gpu' cannot be used"),
    _score("photos --out digits", "digits"),
    _score("photos --out /dev/null/x.csv", "Cannot write"),
    _score("photos --detectors msp", "--detector"),
    _score("photos --limit 3", "No such option: --limit"),
    done(f"{_SCORE} photos --out new.csv", "6 rows in new.csv", writes="new.csv"),
    done(f"{_SCORE} photos --json --out new.json", "new.json", writes="new.json"),
    done(f"{_SCORE} digits/one/1.png colours flat", "score", writes=""),
    done(f"{_SCORE} 'my photos' --detector energy --json", '"score"', writes=""),
    done(f"{_SCORE} digits.npz --detector dpn-mi --detector MSP", "MSP", writes=""),
]

LIST = [
    refused("list", "Missing argument"),
    refused("list detectrs", "Did you mean 'detectors'?"),
    refused("list detector", "Did you mean 'detectors'?"),
    refused("list ''", "Unknown kind ''"),
    refused("list methods --backbone test_resnet", "it does not filter methods"),
    refused("list detectors --backbone tset_resnet", "Did you mean 'test_resnet'"),
    refused("list detectors dpn-mi energy", "unexpected extra argument"),
    refused("list detectors --epochs 3", "No such option: --epochs"),
    _shows("list detectors 'no-such-*'", "No detector matches 'no-such-*'."),
    _shows("list detectors '[z-a' --json", "[]"),
    _shows("list losses dpn-minsu", "No loss matches 'dpn-minsu'."),
    _shows("list backbones 'mlp_*' --json", '"mlp_synthetic"'),
    _shows("list suites --json", '"digits"'),
    _shows("list methods", "baseline", DPN_PLUGINS="no-such-plugin"),
    _shows("--no-plugins list methods", "baseline"),
]

REPORT = [
    refused("report", "Missing argument"),
    refused("report no-such-folder", "no-such-folder"),
    refused("report empty", "empty"),
    refused("report photos", "photos"),
    refused("report notes.txt", "notes.txt"),
    refused("report image-run", "image-run"),
    refused("report results", "results"),
    refused("report table", "table"),
    refused("report bench photos --out new", "photos"),
    refused("report bench bench", "out must name a folder"),
    refused("report bench --out photos", "IMG_0.png"),
    refused("report bench --out report-only", "report.html"),
    refused("report bench --out notes.txt", "notes.txt"),
    refused("report bench --out /dev/null/x", "Cannot write"),
    done("report bench --out new", "new/report.html"),
    done("report ./bench --out 'new/a b' --json", "new/a b/report.html"),
]

PLOT = [
    refused("plot", "Missing argument"),
    refused("plot simplex", "three"),
    refused("plot paper 1 1 1", "simplex"),
    refused("plot simplex 1 1 1 --bench nowhere", "paper"),
    refused("plot paper --bench nowhere", "nowhere"),
    refused("plot simplx 1 1 1", "Did you mean 'simplex'?"),
    refused("plot simplex 1 1", "three"),
    refused("plot simplex 1 1 1 1", "three"),
    refused("plot simplex 0 1 1", "0"),
    refused("plot simplex -- -1 1 1", "-1"),
    refused("plot simplex nan 1 1", "nan"),
    refused("plot simplex inf 1 1", "inf"),
    refused("plot simplex one two three", "values"),
    refused("plot simplex 1 1 1 --out new.xyz", ".png"),
    refused("plot simplex 1 1 1 --out new", ".png"),
    refused("plot simplex 1 1 1 --out photos", "photos"),
    refused("plot simplex 1 1 1 --out /dev/null/x.png", "Cannot write"),
    done("plot simplex 1e-30 1e30 1 --out new.png", "new.png", writes="new.png"),
    done("plot simplex 1 2 3 --out 'new/ä b.svg' --json", "new/ä b.svg"),
    done("plot simplex 1 2 3", "simplex.png", writes="simplex.png"),
]

ABOUT = [
    refused("sore", "Did you mean 'score'?"),
    refused("benchmark", "No such command 'benchmark'."),
    refused("--json list detectors", "No such option: --json"),
    refused("plugins digits", "unexpected extra argument"),
    refused("doctor --device cpu", "No such option: --device"),
    refused("check", "Missing argument"),
    refused("check ''", "''"),
    refused("check no_such_module", "no_such_module"),
    refused("check notes.txt", "notes.txt"),
    refused("check ../desk", "../desk"),
    refused("check 'a b'", "a b"),
    Case("check broken_plugin", "no_such_module_of_anybody", 1),
    Case("check plain_module --json", "failed", 1),
    Case("doctor", "no-such-plugin", 1, env={"DPN_PLUGINS": "no-such-plugin"}),
    Case("doctor --json", "no-such-plugin", 1, env={"DPN_PLUGINS": "no-such-plugin"}),
    _shows("doctor --json", '"missing": []', DPN_PLUGINS=""),
    _shows("plugins", "no-such-plugin", DPN_PLUGINS="no-such-plugin"),
    _shows("plugins --json", '"failures": []', DPN_PLUGINS=" , "),
    _shows("--no-plugins plugins --json", "dpn-plugin"),
    _shows("--version", "dpn-plugin"),
    _shows("--version --help", "dpn"),
]

#: in a folder that holds a run, a benchmark and images and cannot be written
READ_ONLY = [
    refused("plot simplex 1 2 3 --out locked/new.png", "Cannot write"),
    refused("plot simplex 1 2 3 --out locked/new/new.png", "Cannot write"),
    refused(f"{_SCORE} photos --out locked/new.csv", "Cannot write"),
    refused("report bench --out locked/new", "Cannot write"),
    refused("bench points.toml --limit 60 --device cpu --out locked/new", "Cannot write"),
    refused("bench points.toml --limit 60 --device cpu --out locked", "Cannot write"),
    refused(f"{POINTS} --out locked/new", "Cannot write"),
    refused(f"{POINTS} --out locked", "Cannot write"),
]

CASES = [*SCORE, *LIST, *REPORT, *PLOT, *ABOUT]
