"""Plans: edges resolved, names of versions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.plans import a_plan, a_spec
from tidemill.domain.identifiers import VersionId
from tidemill.domain.plan import compile_plan, decode_plan, encode_workflow, version_of
from tidemill.domain.task_run import TaskKind
from tidemill.domain.workflow import OUTPUT_ID, Source, TriggerRule, Workflow


def test_edges_point_both_ways_wherever_tasks_stand_in_the_file() -> None:
    plan = a_plan(a_spec("send", "pay", "fetch"), a_spec("fetch"), a_spec("pay", "fetch"))

    assert [node.parents for node in plan.nodes] == [(2, 1), (), (1,)]
    assert [node.children for node in plan.nodes] == [(), (0, 2), (0,)]
    assert plan.roots == (1,)


def test_reading_a_result_is_waiting_for_it() -> None:
    inputs = {"order": Source(result="fetch"), "again": Source(result="fetch"), "limit": 5}
    plan = a_plan(a_spec("wait"), a_spec("fetch"), a_spec("pay", "wait", inputs=inputs))

    assert plan.nodes[2].parents == (0, 1)
    assert plan.nodes[2].references == (1,)


def test_constants_and_run_input_refer_to_no_task() -> None:
    inputs = {"a": Source(const="fetch"), "b": Source(input="fetch"), "c": "fetch"}
    plan = a_plan(a_spec("fetch"), a_spec("pay", inputs=inputs))

    assert (plan.nodes[1].parents, plan.nodes[1].references) == ((), ())
    assert plan.roots == (0, 1)


def test_what_assignments_need_is_encoded_once() -> None:
    node = a_plan(
        a_spec("fetch", params={"url": "x"}, inputs={"a": 1}, queue="mail", labels={"gpu": "a"})
    ).nodes[0]

    assert (node.params, node.inputs, node.route) == (b'{"url":"x"}', b'{"a":1}', "mail!noop?gpu=a")
    assert (node.index, node.id, node.kind) == (0, "fetch", TaskKind.TASK)


def test_a_workflow_without_output_has_no_node_for_it() -> None:
    assert a_plan(a_spec("fetch")).output is None


def test_the_output_waits_for_the_tasks_that_it_reads() -> None:
    tasks = (a_spec("fetch"), a_spec("log"), a_spec("pay", "fetch"))

    output = a_plan(*tasks, output="{paid: pay.sum, order: fetch.id}").output

    assert output is not None
    assert (output.id, output.kind, output.index) == (OUTPUT_ID, TaskKind.OUTPUT, 3)
    assert output.parents == output.references == (0, 2)
    assert output.spec.trigger is TriggerRule.NONE_FAILED


def test_an_output_that_may_read_everything_waits_for_everything() -> None:
    output = a_plan(a_spec("fetch"), a_spec("log"), output="@").output

    assert output is not None
    assert output.parents == (0, 1)


def test_a_stored_definition_gives_the_same_plan() -> None:
    inputs = {"limit": 5, "order": Source(result="fetch", path="id"), "why": Source(const=[{}])}
    plan = a_plan(a_spec("fetch"), a_spec("pay", inputs=inputs), output="pay")

    assert decode_plan(VersionId("v1"), encode_workflow(plan.workflow)) == plan


def test_the_order_of_inputs_does_not_change_the_order_of_telling() -> None:
    inputs = {"z": Source(result="fetch"), "a": Source(result="log")}
    plan = a_plan(a_spec("log"), a_spec("fetch"), a_spec("pay", inputs=inputs))

    stored = decode_plan(VersionId("v1"), encode_workflow(plan.workflow))

    assert stored.roots == plan.roots
    assert [node.children for node in stored.nodes] == [node.children for node in plan.nodes]


def test_equal_definitions_have_one_name_per_namespace() -> None:
    first = encode_workflow(Workflow(name="w", tasks=(a_spec(params={"a": 1, "b": 2}),)))
    second = encode_workflow(Workflow(name="w", tasks=(a_spec(params={"b": 2, "a": 1}),)))

    assert version_of("default", first) == version_of("default", second)
    assert version_of("default", first) != version_of("other", first)
    assert version_of("default", first) != version_of("default", first + b" ")


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.data())
def test_children_are_the_mirror_of_parents_in_rising_order(
    count: int, data: st.DataObject
) -> None:
    specs = [
        a_spec(f"t{place}", *data.draw(st.sets(st.sampled_from(names)) if names else st.just(())))
        for place in range(count)
        for names in [[f"t{above}" for above in range(place)]]
    ]
    plan = compile_plan(VersionId("v1"), Workflow(name="w", tasks=tuple(reversed(specs))))

    down = {(node.index, child) for node in plan.nodes for child in node.children}
    up = {(parent, node.index) for node in plan.nodes for parent in node.parents}

    assert down == up
    assert all(list(node.children) == sorted(set(node.children)) for node in plan.nodes)
    assert list(plan.roots) == [node.index for node in plan.nodes if not node.parents]
