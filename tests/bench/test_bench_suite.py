"""Suite files: a message about a mistake names the wrong key."""

from pathlib import Path

import pytest
from tiny_bench import DIGITS, POINTS, suite_file

import dpn_plugin
from dpn_plugin.bench import Request, load_suite, make_plan
from dpn_plugin.bench.record import NotRun
from dpn_plugin.errors import UserError
from dpn_plugin.runs import Recipe

MISTAKES = {
    "unknown key": ("title", 'colour = "red"\ntitle', "Unknown key 'colour'"),
    "misspelt key": ("methods =", "method =", "Unknown key 'method'. Did you mean 'methods'?"),
    "no title": ('title = "Points"\n', "", "title is missing."),
    "no training": ("[train]", "[training]", "Unknown key 'training'. Did you mean 'train'?"),
    "misspelt in_domain": (
        "[in_domain]", "[in_domian]", "Unknown key 'in_domian'. Did you mean 'in_domain'"
    ),
    "misspelt source": (
        '[in_domain]\nsource', "[in_domain]\nsorce",
        "in_domain: Unknown key 'sorce'. Did you mean 'source'?",
    ),
    "misspelt source of the outliers": (
        '[outliers]\nsource', "[outliers]\nsorce",
        "outliers: Unknown key 'sorce'. Did you mean 'source'?",
    ),
    "misspelt classes of the outliers": (
        "limit = 100", "clases = [1]", "outliers: Unknown key 'clases'. Did you mean 'classes'?"
    ),
    "misspelt source of a test set": (
        '[far.around]\nsource', "[far.around]\nsorce",
        "far.around: Unknown key 'sorce'. Did you mean 'source'?",
    ),
    "misspelt backbone": (
        "backbone =", "bakbone =", "[train]: Unknown training option 'bakbone'. Did you mean 'back"
    ),
    "source that gives a key twice": (
        'gaussians-ood"\nlimit', 'gaussians-ood?limit=3"\nlimit',
        "outliers: 'limit' is given twice",
    ),
    "two sizes": (
        "seeds = 1", "seeds = 1\ninput_size = [16, 16]",
        "input_size: Input should be [channels, size, size]",
    ),
    "too many epochs": (
        "epochs = 2", "epochs = 99999999999999",
        "[train]: epochs: Input should be less than or equal to 100000",
    ),
    "wrong type": ("seeds = 1", 'seeds = "1"', "seeds: Input should be a valid integer, not '1'."),
    "no samples to calibrate": (
        "seeds = 1", "seeds = 1\ncalibration_samples = 0",
        "calibration_samples: Input should be greater than or equal to 1",
    ),
    "no seeds": ("seeds = 1", "seeds = 0", "seeds: Input should be greater than or equal to 1"),
    "no list": (
        'methods = ["baseline", "dpn-minus"]',
        'methods = "baseline"',
        "methods.run: Input should be a valid list, not 'baseline'.",
    ),
    "no methods": ('["baseline", "dpn-minus"]', "[]", "methods.run: List should have at least 1"),
    "key of a source": (
        '[far.around]\nsource = "synthetic:gaussians-ood"\nsplit',
        '[far.around]\nsource = "synthetic:gaussians-ood"\nsplt',
        "far.around: Unknown key 'splt'. Did you mean 'split'?",
    ),
    "no source": (
        '[in_domain]\nsource = "synthetic:gaussians"',
        "[in_domain]\nlimit = 3",
        "in_domain.source is missing.",
    ),
    "limit": ("limit = 100", "limit = 0", "outliers.limit: Input should be greater than or equal"),
    "set called far": ("[far.around]", "[far.far]", "far.far: 'far' stands for the mean"),
    "set without a name": ("[far.around]", "[far]", "write [far.NAME]"),
    "unknown table": ("[far.around]", "[spare]", "Unknown key 'spare'"),
    "key of training": ("epochs = 2", "epoch = 2", "[train]: Unknown training option 'epoch'"),
    "value of training": ("epochs = 2", "epochs = -2", "[train]: epochs: Input should be greater"),
    "recipe": ('recipe = "synthetic"', 'recipe = "sinthetic"', "Did you mean 'synthetic'"),
    "no text": ("title", "title title", "mine.toml is not valid TOML: "),
    "paper": ("seeds = 1", 'seeds = 1\npaper_task = "C11"', "paper_task: Input should be 'C10',"),
    "size": ("seeds = 1", "seeds = 1\ninput_size = [1, 8, 9]", "input_size: Input should be [cha"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_wrong_key_is_named(case: str, tmp_path: Path) -> None:
    old, new, words = MISTAKES[case]
    path = suite_file(tmp_path, POINTS, {old: new})
    with pytest.raises(UserError) as caught:
        load_suite(str(path))
    assert words in str(caught.value)
    assert "mine.toml" in str(caught.value)


def test_sources_can_be_one_text_each(tmp_path: Path) -> None:
    text = """
    title = "Digits"
    in_domain = "sklearn:digits?classes=0-4"
    outliers = "sklearn:digits?classes=5,6&limit=9"
    [near]
    seven = "sklearn:digits?classes=7"
    [far.flower]
    source = "sklearn:photograph/flower?patches=50"
    [train]
    backbone = "test_resnet"
    """
    _, suite, _ = load_suite(str(suite_file(tmp_path, text)))
    assert {key: each.selection for key, each in suite.sources.items()} == {
        "in_domain": "classes=0-4",
        "outliers": "classes=5,6, limit=9",
        "near.seven": "classes=7",
        "far.flower": "patches=50",
    }


def test_sets_are_needed_and_have_one_name_each(tmp_path: Path) -> None:
    text = POINTS.replace("[far.around]", "[outliers.more]").replace("[outliers]", "[outliers.one]")
    with pytest.raises(UserError, match=r"no OOD test sets, \[near.NAME\] or \[far.NAME\]"):
        load_suite(str(suite_file(tmp_path, text)))
    twice = '[near.around]\nsource = "synthetic:gaussians-ood"\n[train]'
    with pytest.raises(UserError, match=r"near.around and far.around: names of sets must differ"):
        load_suite(str(suite_file(tmp_path, POINTS, {"[train]": twice})))


def test_a_suite_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Unknown suite 'digts'. Did you mean 'digits'"):
        load_suite("digts")
    with pytest.raises(UserError, match=r"There is no suite file '.*nothing.toml'"):
        load_suite(str(tmp_path / "nothing.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot be read"):
        load_suite(str(tmp_path / "binary.toml"))


@pytest.mark.parametrize("name", dpn_plugin.list_suites())
def test_every_suite_that_we_ship_has_a_plan(name: str, tmp_path: Path) -> None:
    plan = make_plan(Request(name, tmp_path))
    assert {run.find_training_state() for run in plan.runs} == {"train"}
    assert [each.method for each in plan.not_run] == (["mcdp"] if name == "tim" else [])
    assert len(plan.runs) == (len(plan.suite.methods.run) - len(plan.not_run)) * plan.suite.seeds


def test_the_suite_of_a_network_without_dropout_leaves_mcdp_out_and_says_why(
    tmp_path: Path,
) -> None:
    assert "drop_rate is 0 (recipe 'tim')" in make_plan(Request("tim", tmp_path)).not_run[0].reason
    with pytest.raises(UserError, match=r"None of the methods mcdp can be run: .*set drop_rate in"):
        make_plan(Request("tim", tmp_path, methods=("mcdp",)))
    path = Path(str(dpn_plugin.plugins.registry.load("suites", "tim")))
    text = path.read_text("utf-8").replace("[train]", "[train]\ndrop_rate = 0.5")
    plan = make_plan(Request(str(suite_file(tmp_path, text)), tmp_path, methods=("mcdp",)))
    assert {run.config.recipe.drop_rate for run in plan.runs} == {0.5}


@pytest.mark.parametrize(
    ("name", "backbone"), [("c10", "vgg16_cifar"), ("c100", "vgg16_cifar"), ("tim", "vgg16_tim")]
)
def test_the_papers_suites_have_its_network_recipe_and_calibration(
    name: str, backbone: str, tmp_path: Path
) -> None:
    plan = make_plan(Request(name, tmp_path))
    assert {run.config.backbone for run in plan.runs} == {backbone}
    assert {run.config.recipe for run in plan.runs} == {Recipe.named(name, calibration=0.02)}
    assert plan.suite.calibration_samples == 5000


def test_outliers_and_tests_of_one_source_are_refused_by_the_plan(tmp_path: Path) -> None:
    path = suite_file(tmp_path, DIGITS, {"classes = [5, 6]": "classes = [5, 8]"})
    with pytest.raises(UserError, match=r"outliers 'outliers' .*test set 'eight'.* one data set"):
        make_plan(Request(str(path), tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("classes = [5, 6]", "classes = [4, 5]", "data 'in_domain' .*outliers 'outliers'"),
        ("classes = [8]", "classes = [3]", "in-domain data 'in_domain' .*test set 'eight'"),
        (
            "[outliers]",
            '[in_domain_test]\nsource = "sklearn:digits"\nclasses = { first = 5 }\n[outliers]',
            "'in_domain' and 'in_domain_test' are the same part of sklearn:digits",
        ),
        (
            "[outliers]",
            '[in_domain_test]\nsource = "npz:a.npz"\n[far.a]\nsource = "npz:a.npz"\n[outliers]',
            "in-domain data 'in_domain_test' .*test set 'a'",
        ),
    ],
)  # fmt: skip
def test_in_domain_data_that_is_used_twice_is_refused_by_the_plan(
    old, new, words, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=words):
        make_plan(Request(str(suite_file(tmp_path, DIGITS, {old: new})), tmp_path))


def test_cifar_100_is_no_outlier_beside_openoods_near_column(tmp_path: Path) -> None:
    path = Path(str(dpn_plugin.plugins.registry.load("suites", "openood-cifar10")))
    text = path.read_text("utf-8").replace(
        "folder:images_classic/tin597", "openood:cifar10/test_cifar100"
    )
    with pytest.raises(UserError, match="'cifar100'"):
        make_plan(Request(str(suite_file(tmp_path, text)), tmp_path))


def test_the_command_line_overrides_the_suite(tmp_path: Path) -> None:
    request = Request(
        str(suite_file(tmp_path, DIGITS)),
        tmp_path,
        backbones=("test_vit", "test_resnet", "test_vit"),
        methods=("oe", "baseline", "oe"),
        detectors=("dpn-m*", "energy", "dpn-mi"),
        seeds=2,
        epochs=7,
        limit=30,
    )
    plan = make_plan(request)
    titles = [run.title for run in plan.runs]
    assert titles == [
        f"{backbone} {method} seed {seed}"
        for backbone in ("test_vit", "test_resnet")
        for method in ("oe", "baseline")
        for seed in (0, 1)
    ]
    assert plan.detectors == ("dpn-maxp", "dpn-mi", "energy-based")
    config = plan.runs[0].config
    assert (config.recipe.epochs, config.in_domain.limit, config.outliers[0].limit) == (7, 30, 30)
    assert plan.suite.far["noise"].limit == 30


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"methods": ("basline",)}, "Unknown method 'basline'. Did you mean 'baseline'"),
        ({"detectors": ("dpn-mu",)}, "Unknown detector 'dpn-mu'. Did you mean 'dpn-mi'"),
        ({"detectors": ("nothing-*",)}, "No detector matches 'nothing-*'"),
        ({"backbones": ("resnet81",)}, "'resnet81'"),
    ],
)
def test_unknown_names_are_refused_by_the_plan(asked, words, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        make_plan(Request(str(suite_file(tmp_path, POINTS)), tmp_path, **asked))
    assert words in str(caught.value)


def test_methods_that_need_outliers_are_left_out_where_there_are_none(tmp_path: Path) -> None:
    text = POINTS.replace("[outliers]", "[far.more]")
    plan = make_plan(Request(str(suite_file(tmp_path, text)), tmp_path))
    assert [run.config.method for run in plan.runs] == ["baseline"]
    reason = "the suite has no outliers to train with"
    assert plan.not_run == (NotRun(method="dpn-minus", reason=reason),)
    with pytest.raises(UserError, match="None of the methods oe can be run"):
        make_plan(Request(str(suite_file(tmp_path, text)), tmp_path, methods=("oe",)))
