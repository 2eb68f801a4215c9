#include "muster/datasets/picture_model.h"

#include "muster/core/eval/any_evaluation.h"
#include "muster/core/eval/evaluation.h"
#include "muster/core/eval/non_finite_prediction.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/image_folder.h"
#include "muster/datasets/image_set_iterator.h"
#include "tests/support/log_lines.h"
#include "tests/support/png.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

using Names = std::vector<std::string>;

void fill(const std::filesystem::path& path, std::uint8_t value, int width, int height) {
  std::filesystem::create_directories(path.parent_path());
  test::writePng(path, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height), value), width,
                 height);
}

/// A network whose logits of dark and light are 5 - 10 x and 10 x - 5, of the mean brightness x.
std::unique_ptr<MultiLayerNetwork> brightness(InputDescription description) {
  auto network = std::make_unique<MultiLayerNetwork>(
      MultiLayerConfiguration{.inputShape = {1, 2, 3}, .layers = {Output{.classes = 2}}});
  network->init();
  auto& parameters = network->blocks().front();
  const auto& segments = parameters.segments->segments;  // weight [2, 6] and bias [2]
  float* const weight = parameters.values.data<float>() + segments.at(0).offset;
  float* const bias = parameters.values.data<float>() + segments.at(1).offset;
  for (int i = 0; i < 12; ++i) weight[i] = i < 6 ? -10.0f / 6 : 10.0f / 6;
  bias[0] = 5;
  bias[1] = -5;
  network->setInputDescription(std::move(description));
  return network;
}

const InputDescription kDescription{.pictures = PictureDescription{.channels = 1, .height = 2, .width = 3},
                                    .classes = {"dark", "light"}};

}  // namespace

TEST_CASE("a model's file alone predicts pictures of any size, in a file or a folder") {
  const test::TemporaryDirectory directory;
  brightness(kDescription)->save(directory / "model.safetensors");
  fill(directory / "new/night.png", 51, 30, 20);     // 0.2: logits 3 and -3
  fill(directory / "new/deep/snow.png", 204, 3, 2);  // 0.8
  test::writeFile(directory / "new/readme.txt", "x");
  auto model = PictureModel::load(directory / "model.safetensors");
  const auto all = model.predict(directory / "new");
  CHECK(all.files == Names{"deep/snow.png", "night.png"});
  CHECK(all.classes == Names{"light", "dark"});
  CHECK(all.names == Names{"dark", "light"});
  REQUIRE(all.values.shape() == Shape{2, 2});
  const double likely = 1 / (1 + std::exp(-6.0));
  CHECK(all.values.data<float>()[1] == doctest::Approx(likely));
  CHECK(all.values.data<float>()[2] == doctest::Approx(likely));
  const auto one = model.predict(directory / "new/night.png");
  CHECK(one.files == Names{"night.png"});
  CHECK(one.classes == Names{"dark"});
}

TEST_CASE("a picture for which the network has no number is named, and nothing is predicted") {
  const test::TemporaryDirectory directory;
  fill(directory / "new/a.png", 0, 3, 2);
  fill(directory / "new/b.png", 255, 3, 2);
  auto network = brightness(kDescription);
  network->blocks().front().values.data<float>()[11] = test::kInfinity;  // times 0 is NaN
  PictureModel model(std::move(network));
  CHECK(test::thrown<NonFinitePrediction>([&] { model.predict(directory / "new"); }) ==
        "predict: a prediction for example 0 is NaN (a.png)");
}

TEST_CASE("models that do not know their pictures, and folders without pictures, are refused") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "model.safetensors";
  const auto problem = [&](MultiLayerNetwork& network) {
    network.save(path);
    return test::thrown<FileError>([&] { PictureModel::load(path); });
  };
  const std::string unknown =
      path.string() +
      ": the model does not know the size of its pictures and its classes; it was trained on "
      "other data, or saved without setInputDescription";
  auto nameless = kDescription, wide = kDescription;
  nameless.classes.clear();
  wide.pictures->width = 4;
  CHECK(problem(*brightness({})) == unknown);
  CHECK(problem(*brightness(nameless)) == unknown);
  CHECK(problem(*brightness(wide)) ==
        path.string() + ": the model reads [1, 2, 3], and its description brings pictures to [1, 2, 4]");
  MultiLayerNetwork table({.inputShape = {2}, .layers = {Output{.classes = 2}}});
  table.init();
  table.setInputDescription({.columns = {{.name = "a"}, {.name = "b"}}, .classes = {"dark", "light"}});
  CHECK(problem(table) ==
        path.string() + ": it is a model of a table, not of pictures; TableModel predicts with it");
  PictureModel model(brightness(kDescription));
  std::filesystem::create_directory(directory / "empty");
  CHECK(test::thrown<FileError>([&] { model.predict(directory / "empty"); }) ==
        (directory / "empty").string() + ": has no pictures: no files .png, .jpg or .jpeg");
  CHECK_THROWS_AS(model.predict(directory / "missing.png"), FileError);
}

TEST_CASE("a broken picture of a folder is named, and the others are predicted") {
  const test::TemporaryDirectory directory;
  PictureModel model(brightness(kDescription));
  for (int i = 0; i < 40; ++i) fill(directory / fmt::format("new/{:02}.png", i), i % 2 == 0 ? 51 : 204, 5, 4);
  const auto whole = test::readFile(directory / "new/07.png");
  test::writeFile(directory / "new/07.png", whole.substr(0, whole.size() / 2));
  for (const char* name : {"new/a.webp", "new/b.webp", "new/notes.txt", "new/.hidden"})
    test::writeFile(directory / name, "x");
  const test::LogLines log;
  const auto predicted = model.predict(directory / "new");
  REQUIRE(predicted.files.size() == 39);
  REQUIRE(predicted.values.shape() == Shape{39, 2});
  for (std::size_t i = 0; i < 39; ++i) {
    const int number = static_cast<int>(i) + (i >= 7 ? 1 : 0);
    CHECK(predicted.files[i] == fmt::format("{:02}.png", number));
    CHECK(predicted.classes[i] == (number % 2 == 0 ? "dark" : "light"));
  }
  REQUIRE(predicted.unreadable.size() == 1);
  CHECK(predicted.unreadable[0].starts_with((directory / "new/07.png").string() + ": "));
  CHECK(
      log.all() ==
      Names{fmt::format(
                "warning: {}: 40 pictures read, and left out 1 .txt, 2 .webp; .png, .jpg and .jpeg are read",
                (directory / "new").string()),
            "warning: " + predicted.unreadable[0] + "; it is not predicted"});
  CHECK_THROWS_AS(model.predict(directory / "new/07.png"), FileError);  // asked for it alone
  for (int i = 0; i < 40; ++i) test::writeFile(directory / fmt::format("new/{:02}.png", i), "x");
  CHECK_THROWS_AS(model.predict(directory / "new"), FileError);  // all are broken
}

TEST_CASE("a model is evaluated on a folder of its own classes only") {
  const test::TemporaryDirectory directory;
  const std::filesystem::path data = directory / "data";
  fill(data / "dark/a.png", 51, 3, 2);
  for (const char* light : {"light/b.png", "light/c.png", "dark/d.png"})  // the last in the wrong directory
    fill(data / light, 204, 3, 2);
  PictureModel model(brightness(kDescription));
  CHECK(model.evaluate(data).accuracy() == 0.75);
  const auto scored = [&] {
    const auto folder = readImageFolder(data, {.colour = PictureColour::Grey});
    const auto [some, others] = split(folder.images, 0.5, /*seed=*/1);
    ImageSetIterator rows(some, 1);
    return model.network().evaluate(rows).examples();
  };
  CHECK(scored() == 2);
  std::filesystem::rename(data / "light", data / "bright");  // sorts before dark
  CHECK_CONTAINS(test::thrown<FileError>([&] { model.evaluate(data); }),
                 "bright: is no class; there are dark, light");
  CHECK(test::thrown<InvalidArgument>([&] { scored(); }) ==
        "evaluate: class 0 is bright in the data, and dark in the model");
}
