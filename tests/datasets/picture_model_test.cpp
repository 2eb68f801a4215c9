#include "muster/datasets/picture_model.h"

#include <doctest/doctest.h>

#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/image_folder.h"
#include "tests/support/png.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

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
  CHECK(one.files == Names{(directory / "new/night.png").string()});
  CHECK(one.classes == Names{"dark"});
}

TEST_CASE("models that do not know their pictures, and folders without pictures, are refused") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "model.safetensors";
  const auto problem = [&](InputDescription description) {
    brightness(std::move(description))->save(path);
    return test::thrown<FileError>([&] { PictureModel::load(path); });
  };
  CHECK(problem({}) ==
        path.string() +
            ": the model does not know the size of its pictures and its classes; it was trained on "
            "other data, or saved without setInputDescription");
  auto description = kDescription;
  description.classes.push_back("grey");
  CHECK(problem(description) == path.string() + ": the model has outputs [2], and its description 3 classes");
  description = kDescription;
  description.pictures->width = 4;
  CHECK(problem(description) ==
        path.string() + ": the model reads [1, 2, 3], and its description brings pictures to [1, 2, 4]");
  brightness(kDescription)->save(path);
  auto model = PictureModel::load(path);
  std::filesystem::create_directory(directory / "empty");
  CHECK(test::thrown<FileError>([&] { model.predict(directory / "empty"); }) ==
        (directory / "empty").string() + ": has no pictures: no files .png, .jpg or .jpeg");
  CHECK_THROWS_AS(model.predict(directory / "missing.png"), FileError);
}
