#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"

#include <fmt/ranges.h>

#include <fstream>

#include "muster/core/base/random.h"
#include "muster/core/io/safetensors.h"
#include "muster/core/nn/own_output.h"
#include "tests/core/nn/batches.h"
#include "tests/support/arrays.h"
#include "tests/support/list_iterator.h"
#include "tests/support/skip.h"
#include "tests/support/state_bits.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

/// [1, 6, 6] -> conv [2, 4, 4] -> pool [2, 2, 2] -> dense [4] -> output [3].
MultiLayerConfiguration smallConvnet(std::int64_t units = 4,
                                     Updater updater = Nesterovs{.learningRate = 0.05}) {
  return {.seed = 11,
          .updater = std::move(updater),
          .inputShape = {1, 6, 6},
          .layers = {Conv2d{.outChannels = 2, .kernel = {3, 3}}, MaxPool2d{.kernel = {2, 2}},
                     Dense{.units = units, .activation = Activation::ReLU}, Output{.classes = 3}}};
}

ListIterator randomData() {
  return ListIterator(classBatches({1, 6, 6}, 8, 3, 3));
}

std::unique_ptr<MultiLayerNetwork> trained(MultiLayerConfiguration configuration, std::int64_t epochs = 2) {
  auto network = std::make_unique<MultiLayerNetwork>(std::move(configuration));
  network->init();
  auto data = randomData();
  network->fit(data, epochs);
  return network;
}

bool sameState(Model& a, Model& b) {
  return stateBits(a) == stateBits(b);
}

/// An updater from outside the library: v = momentum v + g;  w -= lr v.
struct HeavyBall {
  static constexpr std::string_view kType = "test-heavy-ball";
  Schedule learningRate = 0.1;
  double momentum = 0.5;
  std::vector<std::string> stateNames() const { return {"ball"}; }
  double apply(const UpdateStep& step, Context&) const {
    float* const w = step.blocks.parameters.data<float>();
    float* const v = step.blocks.state[0].data<float>();
    for (const auto& range : step.ranges)
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        v[i] = static_cast<float>(momentum) * v[i] + step.blocks.gradients.data<float>()[i];
        w[i] -= static_cast<float>(range.learningRate) * v[i];
      }
    return 0;
  }
  void fields(Fields& f) { f.field("momentum", momentum); }
  void validate() const {}
};

const std::vector<std::pair<std::string, Shape>> kParameters{
    {"conv1.weight", {2, 1, 3, 3}}, {"conv1.bias", {2}},       {"dense1.weight", {4, 8}},
    {"dense1.bias", {4}},           {"output.weight", {3, 4}}, {"output.bias", {3}}};

/// The expected content of the file of `network` according to the format's description, for read_model.py.
std::string expectedFor(MultiLayerNetwork& network) {
  std::string text =
      fmt::format("counters.iteration|I64||{}\ncounters.epoch|I64||{}\ncounters.updaterBegan|I64||{}\n",
                  network.iteration(), network.epoch(), network.iteration() - network.updates());
  const auto add = [&](const std::string& prefix, const StateBlock& block) {
    for (const auto& [name, shape] : kParameters) {
      text += fmt::format("{}{}|F32|{}|", prefix, name, fmt::join(shape.sizes(), ","));
      for (const float value : block.segment(name).span<float>()) text += fmt::format("{:a} ", value);
      text += "\n";
    }
  };
  add("", network.block(BlockKind::Parameters));
  add("updater.velocity.", network.optimizer().state()[0]);
  return text;
}

/// As a version of the library writes it that knew no checksums.
void eraseChecksums(Safetensors& file) {
  for (const char* key : {"muster.crc32", "muster.checked"}) REQUIRE(file.metadata.erase(key) == 1);
}

/// The error of `load`, without the path.
std::string loadingProblem(const std::filesystem::path& path) {
  const std::string text = thrown<FileError>([&] { MultiLayerNetwork::load(path); });
  const std::string prefix = path.string() + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

/// Writes a trained network's file, without checksums, after `change`.
void writeChanged(const std::filesystem::path& path, const std::function<void(Safetensors&)>& change) {
  trained(smallConvnet())->save(path);
  Safetensors file = readSafetensors(path);
  eraseChecksums(file);
  change(file);
  writeSafetensors(path, file);
}

/// The error of `load` for such a file.
std::string problemAfter(const std::function<void(Safetensors&)>& change) {
  const TemporaryDirectory directory;
  writeChanged(directory / "m", change);
  return loadingProblem(directory / "m");
}

void eraseTensor(Safetensors& file, std::string_view name) {
  CHECK(std::erase_if(file.tensors, [&](auto& t) { return t.name == name; }) == 1);
}

Safetensors::Entry& entry(Safetensors& file, std::string_view name) {
  for (auto& candidate : file.tensors)
    if (candidate.name == name) return candidate;
  throw std::logic_error("no such tensor in the test's file");
}

/// A loss with an option named as one of OutputOf.
struct Biased {
  static constexpr std::string_view kType = "test-biased";
  bool bias = false;
  double ofRow(std::span<const float>, std::span<const float>, std::span<float>) const { return 0; }
  void fields(Fields& f) { f.field("bias", bias); }
  void validate() const {}
};

struct Nameless {
  static constexpr std::string_view kType = "test-nameless";
  std::string name = {};
  double slope = 0;
  Shape outputShape(const Shape& input) const { return input; }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding&, Context&) const { return nullptr; }
  void fields(Fields& f) { f.field("slope", slope); }
  void validate() const {}
};

/// A layer with a field that has the name of a common layer setting.
struct WithFrozen {
  static constexpr std::string_view kType = "test-with-frozen";
  std::string name = {};
  bool frozen = false;
  Shape outputShape(const Shape& input) const { return input; }
  std::unique_ptr<ModuleProgram> compile(const ModuleBinding&, Context&) const { return nullptr; }
  void fields(Fields& f) {
    f.field("name", name);
    f.field("frozen", frozen);
  }
  void validate() const {}
};

TEST_CASE("a network is saved and loaded bit for bit, and trains on as if it had never stopped") {
  TemporaryDirectory directory;
  for (const Updater& updater : {Updater(Nesterovs{}), Updater(Adam{}), Updater(Sgd{})}) {
    const auto network = trained(smallConvnet(4, updater));
    network->save(directory / "m.safetensors");
    const auto loaded = MultiLayerNetwork::load(directory / "m.safetensors");
    CHECK(sameState(*network, *loaded));
    CHECK(textOf(loaded->iteration(), loaded->epoch()) == "6 2");
    CHECK(loaded->configuration().toJson() == network->configuration().toJson());
    auto data = randomData(), sameData = randomData();
    network->fit(data);
    CHECK_FALSE(sameState(*network, *loaded));
    loaded->fit(sameData);
    CHECK(sameState(*network, *loaded));
  }
  CHECK(directory.names() == std::set<std::string>{"m.safetensors"});
}

TEST_CASE("tensors in a file have PyTorch's names and shapes") {
  TemporaryDirectory directory;
  trained(smallConvnet())->save(directory / "m.safetensors");
  const Safetensors file = readSafetensors(directory / "m.safetensors");
  CHECK(file.tensors.size() == 2 * kParameters.size() + 3);
  for (const auto& [name, shape] : kParameters)
    for (const auto& saved : {name, "updater.velocity." + name}) {
      CAPTURE(saved);
      REQUIRE(file.find(saved) != nullptr);
      CHECK(file.find(saved)->shape() == shape);
    }
  CHECK(file.find("counters.iteration")->data<std::int64_t>()[0] == 6);
  CHECK(file.find("counters.epoch")->data<std::int64_t>()[0] == 2);
  CHECK(file.metadata.at("format") == "pt");
}

TEST_CASE("a program's notes are saved and loaded, unless they could not be read back") {
  const TemporaryDirectory directory;
  const auto network = trained(smallConvnet());
  const ModelNotes notes{{"my program.batch", "128"}, {"author", "Jörg\n"}, {"empty", ""}};
  saveModel(*network, directory / "noted.safetensors", notes);
  CHECK(readModelNotes(directory / "noted.safetensors") == notes);
  CHECK(sameState(*network, *MultiLayerNetwork::load(directory / "noted.safetensors")));
  network->save(directory / "plain.safetensors");
  CHECK(readModelNotes(directory / "plain.safetensors").empty());
  const auto refused = [&](const ModelNotes& wrong) {
    return thrown<InvalidArgument>([&] { saveModel(*network, directory / "never.safetensors", wrong); });
  };
  CHECK(refused({{"configuration", "mine"}}) == "model file: a note cannot be named \"configuration\"");
  CHECK(refused({{"author", "J\xF6rg"}}) ==
        "model file: the note \"author\" is not UTF-8, so the file could not be read back");
  CHECK(refused({{"\xFF", "x"}}) ==
        "model file: the name of a note is not UTF-8, so the file could not be read back");
  CHECK(directory.names() == std::set<std::string>{"noted.safetensors", "plain.safetensors"});
}

TEST_CASE("Python reads the file with its standard library alone") {
#ifdef MUSTER_PYTHON
  TemporaryDirectory directory;
  const auto network = trained(smallConvnet());
  network->save(directory / "m.safetensors");
  writeFile(directory / "expected.txt", expectedFor(*network));
  const auto command =
      fmt::format("'{}' '{}' '{}' '{}'", MUSTER_PYTHON, MUSTER_READ_MODEL,
                  (directory / "m.safetensors").string(), (directory / "expected.txt").string());
  CHECK(std::system(command.c_str()) == 0);
#else
  skip("there is no Python 3 here");
#endif
}

TEST_CASE("a layer's field must not have a name that the file format reserves") {
  CHECK_REFUSED(Layer::registerType<WithFrozen>(),
                "layer test-with-frozen: the field name frozen is reserved by model files");
  CHECK_CONTAINS(thrown<InvalidArgument>([] { Layer::registry().make("test-with-frozen"); }),
                 "there is no type");
}

TEST_CASE("a layer's fields have different names, one of which is name") {
  CHECK_REFUSED(
      Layer::registerType<OutputOf<Biased>>(),
      "layer test-biased: two of its fields are called bias, and files keep one value of a name; give "
      "another name");
  CHECK_REFUSED(Layer::registerType<Nameless>(),
                "layer test-nameless: its fields() must visit name, by which files call a layer");
}

TEST_CASE("a user-defined updater is saved, and loaded once it is registered") {
  TemporaryDirectory directory;
  const auto network = trained(smallConvnet(4, HeavyBall{.learningRate = 0.05, .momentum = 0.75}));
  network->save(directory / "m.safetensors");
  CHECK_CONTAINS(thrown<FileError>([&] { MultiLayerNetwork::load(directory / "m.safetensors"); }),
                 "updater: there is no type \"test-heavy-ball\"");
  Updater::registerType<HeavyBall>();
  Updater::registerType<HeavyBall>();
  const auto again = MultiLayerNetwork::load(directory / "m.safetensors");
  CHECK(sameState(*network, *again));
  for (auto* each : {network.get(), again.get()}) {
    auto data = randomData();
    each->fit(data);
  }
  CHECK(sameState(*network, *again));
  CHECK(Updater::named("test-heavy-ball", 0.1).stateNames() == std::vector<std::string>{"ball"});
}

TEST_CASE("statistics are saved like parameters") {
  TemporaryDirectory directory;
  MultiLayerNetwork network({.inputShape = {2}, .layers = {BatchNorm{.name = "norm"}, Output{.classes = 2}}});
  network.init();
  network.block(BlockKind::Statistics).segment("norm.mean").data<float>()[1] = 2.5f;
  network.save(directory / "m");
  CHECK(readSafetensors(directory / "m").byName().at("norm.mean")->data<float>()[1] == 2.5f);
  CHECK(sameState(network, *MultiLayerNetwork::load(directory / "m")));
}

TEST_CASE("a file that does not fit the network is refused, and the error names the tensor") {
  CHECK(problemAfter([](auto&) {}) == "");
  // Of an earlier version: all updates are of its updater.
  CHECK(problemAfter([](auto& file) { eraseTensor(file, "counters.updaterBegan"); }) == "");
  CHECK(problemAfter([](auto& file) { eraseTensor(file, "dense1.bias"); }) ==
        "tensor \"dense1.bias\" is missing");
  CHECK(problemAfter([](auto& file) { entry(file, "updater.velocity.conv1.bias").name = "other"; }) ==
        "tensor \"updater.velocity.conv1.bias\" is missing");
  CHECK(problemAfter([](auto& file) { file.add("extra", Tensor::zeros({1})); }) ==
        "tensor \"extra\" does not belong to the network");
  CHECK(problemAfter([](auto& file) {
          entry(file, "output.weight").values = Tensor::zeros({4, 3});
        }) == "tensor \"output.weight\" is float32 [4, 3], but the network has float32 [3, 4]");
  CHECK(problemAfter([](auto& file) {
          entry(file, "output.bias").values = Tensor::zeros({3}, DType::Float64);
        }) == "tensor \"output.bias\" is float64 [3], but the network has float32 [3]");
  CHECK(problemAfter([](auto& file) { file.metadata.erase("configuration"); }) ==
        "holds no muster model: its metadata have no \"configuration\"");
  CHECK(problemAfter([](auto& file) {
          file.metadata["configuration"] = R"({"format": "muster.MultiLayerConfiguration"})";
        }) == "its configuration cannot be used: version: is missing");
  MultiLayerConfiguration open = smallConvnet(), large = smallConvnet(std::int64_t{1} << 50);
  open.inputShape = {};
  CHECK(problemAfter([&](auto& file) {
          file.metadata["configuration"] = open.toJson();
        }).starts_with("its configuration cannot be used: "));
  // Refused before memory is asked for, also by a network that takes its input's shape from the file.
  const auto enlarge = [&, json = large.toJson()](auto& file) { file.metadata["configuration"] = json; };
  const std::string tooLarge =
      "tensor \"dense1.weight\" is float32 [4, 8], but the network has float32 [1125899906842624, 8]";
  CHECK(problemAfter(enlarge) == tooLarge);
  const TemporaryDirectory directory;
  writeChanged(directory / "m", enlarge);
  large.inputShape = {};
  MultiLayerNetwork network(large);
  CHECK(thrown<FileError>([&] { loadState(network, directory / "m"); }).ends_with(tooLarge));
  for (const char* name : {"counters.iteration", "counters.epoch"})
    for (const std::int64_t count : {std::int64_t{-3}, std::numeric_limits<std::int64_t>::max()})
      CHECK(problemAfter([&](auto& file) {
              entry(file, name).values.template span<std::int64_t>()[0] = count;
            }) == fmt::format("{} is {}, but can only be 0 to 1152921504606846976", name, count));
}

TEST_CASE("any changed byte of the header is detected or has no effect") {
  TemporaryDirectory directory;
  const auto path = directory / "m";
  MultiLayerNetwork network({.inputShape = {2}, .layers = {Output{.classes = 2}}});
  network.init();
  network.trainingState() = {{"position", Tensor::zeros({2}, DType::Int64)}, {"none", Tensor::zeros({0, 5})}};
  saveModel(network, path, {{"batch", "128"}});
  const auto sameContents = [](const Safetensors& a, const Safetensors& b) {
    const auto same = [](const Safetensors::Entry& x, const Safetensors::Entry& y) {
      return x.name == y.name && x.values.dtype() == y.values.dtype() &&
             x.values.shape() == y.values.shape() &&
             (x.values.bytes() == 0 || std::memcmp(x.values.raw(), y.values.raw(), x.values.bytes()) == 0);
    };
    return a.metadata == b.metadata && std::ranges::equal(a.tensors, b.tensors, same);
  };
  const Safetensors whole = readSafetensors(path);
  const std::string bytes = readFile(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  std::size_t found = 0;
  std::fstream file(path,
                    std::ios::in | std::ios::out | std::ios::binary);  // changed in place, which is fast
  const auto write = [&](std::size_t at, char byte) {
    file.seekp(static_cast<std::streamoff>(at)).put(byte).flush();
    REQUIRE(file.good());
  };
  for (std::size_t at = 0; at < sizeof length + length; ++at)
    for (const int flip : {1, 2, 4, 8, 16, 32, 64, 128, 'I' ^ 'F'}) {
      write(at, static_cast<char>(bytes[at] ^ flip));
      try {
        checkModelFile(path);
        CAPTURE(flip);
        CAPTURE(at);
        CAPTURE(bytes.substr(at < 20 ? 0 : at - 20, 40));
        CHECK(sameContents(readSafetensors(path), whole));
      } catch (const FileError&) {
        ++found;
      }
      write(at, bytes[at]);
    }
  CHECK(found > 8 * length);
}

TEST_CASE("a damaged configuration is refused by every reader, and files of earlier versions are read") {
  TemporaryDirectory directory;
  const auto path = directory / "m";
  const auto network = trained(smallConvnet());
  network->save(path);
  const std::string bytes = readFile(path);
  Safetensors file = readSafetensors(path);
  std::string damaged = bytes;
  const auto seed = damaged.find("\\\"seed\\\":");
  REQUIRE(seed != std::string::npos);
  char& digit = damaged[damaged.find_first_of("0123456789", seed)];
  digit = digit == '9' ? '8' : static_cast<char>(digit + 1);
  writeFile(path, damaged);
  const std::string problem =
      path.string() +
      ": its header (configuration, notes, names of tensors) is damaged: the checksum does not match";
  for (const auto& read : std::vector<std::function<void()>>{
           [&] { checkModelFile(path); }, [&] { readModelNotes(path); },
           [&] { MultiLayerNetwork::load(path); }, [&] { loadState(*network, path); }})
    CHECK(thrown<FileError>(read) == problem);

  std::string& sums = file.metadata.at("muster.crc32");
  const auto header = sums.find("\"__metadata__\":"), next = sums.find(',', header);
  REQUIRE(next != std::string::npos);
  sums.erase(header, next + 1 - header);
  CHECK(file.metadata.erase("muster.checked") == 1);
  for (const bool tensors : {true, false}) {
    if (!tensors) file.metadata.erase("muster.crc32");
    writeSafetensors(path, file);
    checkModelFile(path);
    CHECK(sameState(*network, *MultiLayerNetwork::load(path)));
  }
}

TEST_CASE("save() refuses a network that was never initialised and a path that cannot be written") {
  TemporaryDirectory directory;
  MultiLayerNetwork network(smallConvnet());
  CHECK_THROWS_AS(network.save(directory / "m.safetensors"), InvalidArgument);
  network.init();
  CHECK_THROWS_AS(network.save(directory / "missing/m.safetensors"), FileError);
  CHECK(directory.names().empty());
  CHECK_THROWS_AS(MultiLayerNetwork::load(directory / "missing.safetensors"), FileError);
}

TEST_CASE("loadState resumes a network of the same architecture") {
  TemporaryDirectory directory;
  const auto path = directory / "m.safetensors";
  const auto network = trained(smallConvnet());
  network->save(path);
  MultiLayerNetwork fresh(smallConvnet());
  loadState(fresh, path);
  CHECK(sameState(*network, fresh));
  MultiLayerConfiguration open = smallConvnet();
  open.inputShape = {};  // the file contains the shape
  MultiLayerNetwork undecided(open);
  loadState(undecided, path);
  CHECK(sameState(*network, undecided));
}

TEST_CASE("loadParameters begins another training with the weights, by the same updater or another one") {
  const TemporaryDirectory directory;
  const auto path = directory / "m.safetensors";
  const auto network = trained(smallConvnet(4, Adam{}));
  network->save(path);
  for (const auto& configuration : {smallConvnet(4, Adam{}), smallConvnet(4, Sgd{})}) {
    MultiLayerNetwork begun(configuration);
    loadParameters(begun, path);
    CHECK(sameBits(begun.block(BlockKind::Parameters).values, network->block(BlockKind::Parameters).values));
    for (const StateBlock* const block : begun.state())
      if (block->kind == BlockKind::UpdaterState)
        CHECK(std::ranges::count(block->values.span<float>(), 0.0f) == block->values.elements());
    CHECK(textOf(begun.iteration(), begun.epoch(), begun.updates()) == "0 0 0");
    CHECK(begun.loadedFrom().empty());
  }
}

TEST_CASE("loadState needs no memory for an input of the shape that a file declares") {
  const TemporaryDirectory directory;
  const Shape large{1, 10'000'000, 10'000'000};
  const std::vector<Layer> layers{GlobalPool2d{}, Output{.classes = 2}};
  MultiLayerNetwork saved({.inputShape = large, .layers = layers}), open({.layers = layers});
  saved.init();
  saved.save(directory / "m");
  loadState(open, directory / "m");
  CHECK(open.configuration().inputShape == large);
}

TEST_CASE("loadState refuses another architecture and leaves the network as it was") {
  TemporaryDirectory directory;
  const auto path = directory / "m.safetensors";
  trained(smallConvnet())->save(path);
  const auto problem = [&](const MultiLayerConfiguration& configuration) {
    const auto network = trained(configuration, 1), before = trained(configuration, 1);
    const std::string text = thrown<FileError>([&] { loadState(*network, path); });
    CHECK(sameState(*network, *before));
    return text;
  };
  CHECK(problem(smallConvnet(5)) ==
        path.string() + ": is of another network: layer 2 has units 4 there, and 5 here");
  auto sigmoid = smallConvnet();  // the same tensors, another function
  sigmoid.layers[2] = Dense{.units = 4, .activation = Activation::Sigmoid};
  CHECK(problem(sigmoid).ends_with("layer 2 has activation \"relu\" there, and \"sigmoid\" here"));
  auto other = smallConvnet();
  other.layers[2] = Flatten{};
  CHECK(problem(other).ends_with("layer 2 has type \"dense\" there, and \"flatten\" here"));
  auto shorter = smallConvnet();
  shorter.layers.erase(shorter.layers.begin() + 2);
  CHECK_CONTAINS(problem(shorter), "its network has 4 layers, this one 3");
  CHECK_CONTAINS(problem(smallConvnet(4, Adam{})), "tensor \"updater.firstMoment.conv1.weight\" is missing");
}

}  // namespace
}  // namespace muster::test
