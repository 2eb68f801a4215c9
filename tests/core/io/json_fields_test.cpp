#include "muster/core/io/json_fields.h"

#include <bit>

#include "muster/core/base/random.h"
#include "tests/support/test.h"

namespace muster {

enum class Fruit { Apple, Pear };
template <>
struct EnumNames<Fruit> {
  static constexpr std::array<std::pair<Fruit, std::string_view>, 2> kNames{
      {{Fruit::Apple, "apple"}, {Fruit::Pear, "pear"}}};
};

namespace {

struct Options {
  bool on = false;
  std::int64_t count = 1;
  std::uint64_t seed = 2;
  double rate = 0.5;
  std::string name = "default";
  Shape shape = {1};
  std::array<std::int64_t, 2> kernel{3, 3};
  Fruit fruit = Fruit::Apple;
  std::string ruleType = "fixed";
  double ruleValue = 7;

  bool operator==(const Options&) const = default;
  void fields(Fields& f) {
    f.field("on", on);
    f.field("count", count);
    f.field("seed", seed);
    f.field("rate", rate);
    f.field("name", name);
    f.field("shape", shape);
    f.field("kernel", kernel);
    f.field("fruit", fruit);
    f.object("rule", ruleType, [&](Fields& inside) { inside.field("value", ruleValue); });
  }
};

Options readOptions(std::string_view text) {
  Options options;
  JsonReader reader(text);
  options.fields(reader);
  reader.finish();
  return options;
}

std::string problemOf(std::string_view text) {
  return test::thrown<InvalidArgument>([&] { readOptions(text); });
}

double throughJson(double value) {
  JsonWriter writer;
  writer.field("rate", value);
  return readOptions(writer.text()).rate;
}

}  // namespace

TEST_CASE("every kind of field is written and read back") {
  Options written{.on = true,
                  .count = std::numeric_limits<std::int64_t>::min(),
                  .seed = std::numeric_limits<std::uint64_t>::max(),
                  .rate = 0.1,
                  .name = "a \"quoted\" name\n\xC3\xA9",
                  .shape = {1, 28, 28},
                  .kernel = {5, 4},
                  .fruit = Fruit::Pear,
                  .ruleType = "step",
                  .ruleValue = -2};
  JsonWriter writer;
  written.fields(writer);
  CHECK((readOptions(writer.text()) == written));
}

TEST_CASE("a text that is not UTF-8 is written as an escape in words") {
  JsonWriter writer;
  writer.put("path", "\xFF.safetensors");
  writer.put("paths", std::array<std::string, 2>{"\xC3\xA9", "\xC3"});
  CHECK(writer.line() == R"({"path": "\\xff.safetensors", "paths": [")"
                         "\xC3\xA9"
                         R"(", "\\xc3"]})");
  JsonReader reader(writer.text());
  std::string path;
  reader.field("path", path);
  CHECK(path == "\\xff.safetensors");
}

TEST_CASE("missing fields keep their values") {
  CHECK((readOptions(R"({"count": 5})") == Options{.count = 5}));
}

TEST_CASE("doubles are written and read back bit for bit") {
  using Limits = std::numeric_limits<double>;
  for (const double value : {0.0, -0.0, 1.0, 0.1, 1.0 / 3, 5e-4, 1e22, 1e23, 9007199254740993.0, 2.5e-324,
                             2.2250738585072011e-308, Limits::max(), Limits::min(), Limits::denorm_min()})
    CHECK(std::bit_cast<std::uint64_t>(throughJson(value)) == std::bit_cast<std::uint64_t>(value));
  const RandomStream random(1, "doubles");
  int wrong = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const auto words = random.words(i);
    const auto value = std::bit_cast<double>((std::uint64_t{words[0]} << 32) | words[1]);
    if (std::isfinite(value) && throughJson(value) != value) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("an integer is accepted for a double, and a double without a fraction for an integer") {
  CHECK(readOptions(R"({"rate": 3})").rate == 3);
  CHECK(readOptions(R"({"rate": 18446744073709551615})").rate == 18446744073709551615.0);
  CHECK(readOptions(R"({"count": 3.0})").count == 3);
  CHECK(readOptions(R"({"count": -1e2})").count == -100);
  CHECK(readOptions(R"({"count": 9007199254740992.0})").count == 9007199254740992);
  CHECK(readOptions(R"({"seed": 5.0})").seed == 5);
  CHECK(readOptions(R"({"shape": [1.0, 28, 28.0]})").shape == Shape{1, 28, 28});
  CHECK(problemOf(R"({"count": 2.5})") == "count: expected a whole number, found 2.5");
  CHECK(problemOf(R"({"count": 1e16})") == "count: expected a whole number, found 1e+16");
  CHECK(problemOf(R"({"seed": -1.0})").starts_with("seed: expected a whole number from 0 to "));
}

TEST_CASE("a type alone stands for an object, and a number for a fixed schedule") {
  CHECK((readOptions(R"({"rule": 5})") == Options{.ruleType = "fixed", .ruleValue = 5}));
  CHECK((readOptions(R"({"rule": "step"})") == Options{.ruleType = "step", .ruleValue = 7}));
  CHECK(problemOf(R"({"rule": [5]})") == "rule: expected an object, found [5]");
}

TEST_CASE("an invalid field is refused with its path, the expected type and the value found") {
  CHECK(problemOf(R"({"on": 1})") == "on: expected true or false, found 1");
  CHECK(problemOf(R"({"count": "x"})") == "count: expected a whole number, found the string \"x\"");
  CHECK(problemOf(R"({"count": 9223372036854775808})") ==
        "count: expected a whole number, found 9223372036854775808");
  CHECK(problemOf(R"({"seed": -1})") ==
        "seed: expected a whole number from 0 to 18446744073709551615, found -1");
  CHECK(problemOf(R"({"rate": null})") == "rate: expected a number, found null");
  CHECK(problemOf(R"({"name": {}})") == "name: expected a string, found an object");
  CHECK(problemOf(R"({"shape": [1, -2]})") ==
        "shape: expected a whole number or an array of at most 6 whole numbers, found [1, -2]");
  CHECK(problemOf(R"({"shape": [1, 2, 3, 4, 5, 6, 7]})") ==
        "shape: expected a whole number or an array of at most 6 whole numbers, found [1, 2, 3, 4, 5, 6, 7]");
  CHECK(problemOf(R"({"kernel": [1, 2, 3]})") == "kernel: expected 2 numbers, got [1, 2, 3]");
  CHECK(problemOf(R"({"fruit": "plum"})") == "fruit: there is no \"plum\"; there are apple, pear");
  CHECK(problemOf(R"({"rule": true})") == "rule: expected an object, found true");
  CHECK(problemOf(R"({"rule": {"value": 5}})") == "rule.type: is missing");
  CHECK(problemOf(R"({"rule": {"type": "a", "value": "b"}})") ==
        "rule.value: expected a number, found the string \"b\"");
  CHECK(problemOf(R"({"rule": {"type": "a", "valeu": 1}})") ==
        "rule.valeu: there is no such field; the nearest is value, of type, value");
  CHECK(problemOf(R"({"cuont": 1})") ==
        "cuont: there is no such field; the nearest is count, of on, count, seed, rate, name, shape, kernel, "
        "fruit, rule");
}

TEST_CASE("groups, arrays of numbers and raw text are read, and unknown fields in them are refused") {
  const auto read = [](std::string_view text) {
    return test::thrown<InvalidArgument>([&] {
      JsonReader reader(text);
      std::vector<double> weights;
      std::int64_t count = 0;
      bool inside = false;
      reader.group("group", [&](JsonReader& group) {
        inside = true;
        group.field("count", count);
        group.numbers("weights", weights);
        const auto raw = group.json("raw");
        require(!raw || *raw == "{\n  \"a\": 1.5\n}\n", "raw is {}", raw.value_or(""));
      });
      reader.finish();
      require(!inside || (count == 2 && weights == std::vector<double>{1, 0.5}), "not read");
    });
  };
  CHECK(read(R"({"group": {"count": 2, "weights": [1, 0.5], "raw": {"a": 1.5}}})") == "");
  CHECK(read("{}") == "");
  CHECK(read(R"({"group": {"cuont": 2}})") ==
        "group.cuont: there is no such field; the nearest is count, of count, weights, raw");
  CHECK(read(R"({"group": 3})") == "group: expected an object, found 3");
  CHECK(read(R"({"group": {"weights": [1, "2"]}})") ==
        "group.weights: expected an array of numbers, found [1, \"2\"]");
}

TEST_CASE("errors inside lists carry the index, also those that the reader of an element throws") {
  const auto read = [](std::string_view text) {
    return test::thrown<InvalidArgument>([&] {
      JsonReader reader(text);
      reader.list("layers", [](JsonReader& layer) {
        std::array<std::int64_t, 2> kernel{1, 1};
        layer.field("kernel", kernel);
        require(kernel[0] > 0, "the kernel is empty");
      });
      reader.finish();
    });
  };
  CHECK(read(R"({"layers": [{"kernel": [5, 5]}, {}]})") == "");
  CHECK(read(R"({"layers": [{}, {}, {"kernal": [5, 5]}]})") ==
        "layers[2].kernal: there is no such field; the nearest is kernel, of kernel");
  CHECK(read(R"({"layers": [{}, {"kernel": [0, 5]}]})") == "layers[1]: the kernel is empty");
  CHECK(read(R"({"layers": [{}, 3]})") == "layers[1]: expected an object, found 3");
  CHECK(read(R"({"layers": {}})") == "layers: expected an array of objects, found an object");
}

TEST_CASE("a byte order mark is skipped, and UTF-16 is named") {
  CHECK(readOptions("\xEF\xBB\xBF{\"count\": 3}").count == 3);
  for (const std::string_view text : {std::string_view("\xFF\xFE{\0", 4), std::string_view("\xFE\xFF\0{", 4)})
    CHECK(problemOf(text) == "the text is UTF-16, and JSON is UTF-8: save it with the encoding UTF-8");
}

TEST_CASE("text that is not JSON is refused with line and column") {
  CHECK(problemOf("").starts_with("not valid JSON at line 1, column 1: "));
  CHECK(problemOf("{\n  \"count\": 1,\n  oops\n}").starts_with("not valid JSON at line 3, column 3: "));
  CHECK(problemOf("{} {}").starts_with("not valid JSON at line 1, column 4: "));
  CHECK_CONTAINS(problemOf(R"({"count": 1, "count": 2})"), "the key \"count\" is given twice");
  CHECK_CONTAINS(problemOf(R"({"rate": 1e999})"), "1e999 does not fit a double");
  CHECK(problemOf("[1]") == "expected a JSON object, found [1]");
  CHECK(problemOf("{\"name\": \"\xFF\"}").starts_with("not valid JSON at line 1"));
  CHECK(problemOf(std::string(100000, '[')).starts_with("not valid JSON at line 1"));
}

TEST_CASE("JSON files are indented to be read by people") {
  JsonWriter writer;
  writer.put("name", "run");
  writer.put("scores", std::vector<double>(30, 0.25));
  writer.put("broken", test::kNan);
  writer.group("plan", [](JsonWriter& plan) {
    plan.put("workers", 2);
    plan.put("share", 1.0);
  });
  writer.list("layers", 2, [](std::size_t i, JsonWriter& layer) {
    layer.put("index", static_cast<std::int64_t>(i));
    layer.put("text", std::string(i == 0 ? 5 : 80, 'x'));
    layer.put("last", true);
  });
  writer.putJson("nested", R"({"a":[],"b":{}})");
  std::string scores = "0.25";
  for (int i = 1; i < 30; ++i) scores += ", 0.25";
  CHECK(writer.text() == R"({
  "name": "run",
  "scores": [)" + scores + R"(],
  "broken": null,
  "plan": {"workers": 2, "share": 1.0},
  "layers": [
    {"index": 0, "text": "xxxxx", "last": true},
    {
      "index": 1,
      "text": ")" + std::string(80, 'x') +
                             R"(",
      "last": true
    }
  ],
  "nested": {"a": [], "b": {}}
}
)");
  CHECK(JsonWriter().text() == "{}\n");
}

}  // namespace muster
