#include "muster/core/nn/compile/network_plan.h"

#include "muster/core/nn/layers.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using namespace detail;

TEST_CASE("values are numbered: inputs, then nodes, with a Flatten before a layer of rows") {
  NetworkLayout layout({{.name = "a", .shape = {2, 3}}, {.name = "b", .shape = {4}}});
  const std::size_t wide = layout.add("wide", Dense{.units = 5}, {0});
  const std::size_t sum = layout.add("joined", Merge{}, {wide, 1});
  layout.addOutput("joined", sum, 0.5);
  const NetworkPlan plan = layout.take();
  CHECK(wide == 3);
  CHECK(sum == 4);
  REQUIRE(plan.nodes.size() == 3);
  CHECK(plan.nameOf(0) == "a");
  CHECK(plan.nameOf(2) == "wide.flatten");
  CHECK(plan.shapeOf(2) == Shape{6});
  CHECK(plan.shapeOf(wide) == Shape{5});
  CHECK(plan.shapeOf(sum) == Shape{9});
  CHECK(plan.nodes[2].inputs == std::vector<std::size_t>{3, 1});
  REQUIRE(plan.outputs.size() == 1);
  CHECK(plan.outputs[0].weight == 0.5);
  CHECK_FALSE(plan.outputs[0].head.has_value());
}

TEST_CASE("an output's weight is that of its loss times its own") {
  NetworkLayout layout({{.name = "x", .shape = {4}}});
  layout.addOutput("out", layout.add("out", Output{.classes = 3, .lossWeight = 4}, {0}), 0.5);
  CHECK(layout.take().outputs[0].weight == 2);
}

TEST_CASE("open sizes: what an input's shape leaves open, and the plan with them") {
  struct Row {
    Shape stated, example;
    OpenSizes sizes;
  };
  for (const Row& row : {Row{{0, 3}, {7, 3}, {7, 0}}, Row{{5, 3}, {5, 3}, {0, 0}}, Row{{0}, {9}, {9, 0}},
                         Row{{3, 0, 0}, {3, 8, 9}, {8, 9}}, Row{{3, 0, 9}, {3, 8, 9}, {8, 0}},
                         Row{{3, 8, 0}, {3, 8, 9}, {0, 9}}})
    CHECK(openSizesOf({.name = "x", .stated = row.stated}, row.example) == row.sizes);

  NetworkLayout layout({{.name = "x", .shape = {3, 0, 0}}});
  const std::size_t conv = layout.add("conv", Conv2d{.outChannels = 2, .kernel = {3, 3}}, {0});
  layout.addOutput("pool", layout.add("pool", GlobalPool2d{}, {conv}));
  const NetworkPlan plan = layout.take();
  CHECK(plan.inputs[0].open());
  CHECK(plan.shapeOf(0) == Shape{3, kExampleSize, kExampleSize});
  const NetworkPlan sized = withSizes(plan, {8, 9});
  CHECK(sized.shapeOf(0) == Shape{3, 8, 9});
  CHECK(sized.shapeOf(conv) == Shape{2, 6, 7});
  CHECK(sized.nodes[1].inputShapes[0] == Shape{2, 6, 7});
  CHECK((shapesFor(plan, {{3, 5, 5}}) == std::vector<Shape>{{3, 5, 5}, {2, 3, 3}, {2, 1, 1}}));
}

TEST_CASE("a layer whose parameters depend on an open size is refused when the layout is taken") {
  NetworkLayout layout({{.name = "x", .shape = {0, 3}}});
  layout.addOutput("d", layout.add("d", Dense{.units = 2}, {0}));
  CHECK_REFUSED(layout.take(),
                "d (dense): its parameters depend on a size that the input's shape leaves open; state it");
}

TEST_CASE("an input is read either as indices or as numbers, and only an input has indices") {
  const Embedding embedding{.vocabulary = 5, .features = 2};
  const Dense dense{.units = 2};
  {
    NetworkLayout layout({{.name = "x", .shape = {4}}});
    layout.add("e", embedding, {0});
    CHECK_REFUSED(layout.add("d", dense, {0}),
                  "network: x is read as indices by another layer, but as numbers by d");
  }
  {
    NetworkLayout layout({{.name = "x", .shape = {4}}});
    const std::size_t value = layout.add("d", dense, {0});
    CHECK_REFUSED(layout.add("e", embedding, {0}), "network: x is read as numbers by d, but as indices by e");
    CHECK_REFUSED(
        layout.add("e2", embedding, {value}),
        "network: e2 (embedding) takes indices, which only an input of the network can give, not d");
  }
}

TEST_CASE("names: unique, UTF-8, no control characters, none of the updater's") {
  NetworkLayout layout({{.name = "x", .shape = {4}}});
  layout.add("d", Dense{.units = 2}, {0});
  CHECK_REFUSED(layout.add("d", Dense{.units = 2}, {0}), "network: two layers are called d");
  CHECK_REFUSED(
      layout.add("updater", Dense{.units = 2}, {0}),
      "updater (dense) of x [4]: its tensor updater.weight would be called as those of the updater and "
      "the counters are in files; name the layer otherwise");
  CHECK_NOTHROW(requireUsableName("layer 1", "größe"));
  CHECK_NOTHROW(requireUsableName("layer 1", ""));
  for (const char* control : {"a\nb", "\t", "\x7f", "\xc2\x85"})
    CHECK_REFUSED(
        requireUsableName("layer 1", control),
        "network: the name of layer 1 holds a control character, as a newline; names are written to "
        "tables and files");
  CHECK_REFUSED(requireUsableName("layer 1", "\xff"),
                "network: the name of layer 1 is not UTF-8, as names in files are");
}

}  // namespace
}  // namespace muster
