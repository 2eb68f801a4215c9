#include "muster/datasets/picture_model.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/plural.h"
#include "muster/core/data/in_parallel.h"
#include "muster/core/io/input_file.h"
#include "muster/datasets/image_folder.h"

namespace muster {
namespace {

constexpr std::size_t kBatch = 32;

/// @throws InvalidArgument if the description does not fit the network.
void requireFits(const Network& network) {
  const auto& description = network.inputDescription();
  const auto& pictures = description.pictures;
  const auto& classes = description.classes;
  require(
      pictures.has_value() && !classes.empty(),
      "the model does not know the size of its pictures and its classes; it was trained on other data, or "
      "saved without setInputDescription");
  require(pictures->channels == 1 || pictures->channels == 3,
          "the model's pictures have {} channels, not 1 or 3", pictures->channels);
  const Shape input = network.exampleFeatures().features.front().value.shape().dropFirst();
  const Shape brought{pictures->channels, pictures->height, pictures->width};
  require(input == brought, "the model reads {}, and its description brings pictures to {}", input.toString(),
          brought.toString());
  const Shape outputs = network.outputShapes().back().second;
  const std::int64_t known = std::ssize(classes);
  require(outputs.rank() == 1 && (outputs[0] == known || (outputs[0] == 1 && known == 2)),
          "the model has outputs {}, and its description {}", outputs.toString(),
          plural(known, "class", "classes"));
}

std::vector<std::filesystem::path> pathsOf(const std::filesystem::path& path,
                                           std::vector<std::string>& files) {
  if (fileTypeOf(path) != std::filesystem::file_type::directory) {
    files = {path.string()};
    return {path};
  }
  files = picturesIn(path);
  if (files.empty()) throw FileError(path, "has no pictures: no files .png, .jpg or .jpeg");
  std::vector<std::filesystem::path> paths;
  for (const auto& file : files) paths.push_back(path / file);
  return paths;
}

}  // namespace

PictureModel::PictureModel(std::unique_ptr<Network> network) : network_(std::move(network)) {
  require(network_ != nullptr, "PictureModel: there is no network");
  requireFits(*network_);
}

PictureModel PictureModel::load(const std::filesystem::path& path) {
  try {
    return PictureModel(Network::load(path));
  } catch (const InvalidArgument& error) {
    throw FileError(path, error.what());
  }
}

PictureOptions PictureModel::options() const {
  const auto& pictures = *description().pictures;
  return {.colour = pictures.channels == 1 ? PictureColour::Grey : PictureColour::Rgb,
          .size = {pictures.height, pictures.width}};
}

Tensor PictureModel::outputsFor(std::span<const std::filesystem::path> paths) {
  const auto& pictures = *description().pictures;
  const Shape shape{pictures.channels, pictures.height, pictures.width};
  const std::int64_t width = network_->outputShapes().back().second[0];
  Tensor outputs = Tensor::empty({std::ssize(paths), width});
  for (std::size_t begin = 0; begin < paths.size(); begin += kBatch) {
    const std::size_t count = std::min(kBatch, paths.size() - begin);
    Tensor batch = Tensor::empty(shape.prepend(static_cast<std::int64_t>(count)), DType::UInt8);
    inParallel(count, [&](std::size_t i) {
      const Tensor picture = readPicture(paths[begin + i], options());
      std::ranges::copy(picture.span<std::uint8_t>(), batch.data<std::uint8_t>() + i * picture.bytes());
    });
    const Tensor some = network_->output(batch);
    std::ranges::copy(some.span<float>(), outputs.data<float>() + static_cast<std::int64_t>(begin) * width);
  }
  return outputs;
}

PicturePredictions PictureModel::predict(const std::filesystem::path& path) {
  std::vector<std::string> files;
  const auto paths = pathsOf(path, files);
  return {namedOutputs(description(), outputsFor(paths)), std::move(files)};
}

}  // namespace muster
