import register_rules
import write_readme_examples
import write_rule_pages


def test_every_rule_file_is_in_the_registry():
    assert register_rules.TABLE.read_text("utf-8") == register_rules.table_text(), "run make docs"


def test_the_rule_pages_are_those_of_the_rules():
    written = {path.name: path.read_text("utf-8") for path in write_rule_pages.PAGES.glob("*.md")}
    assert written == write_rule_pages.pages(), "run make docs"


def test_the_readme_shows_what_the_program_prints():
    text = write_readme_examples.README.read_text("utf-8")
    assert text == write_readme_examples.with_output(text), "run make docs"
