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
  const auto& [format, columns, omitted, pictures, label, classes, targets] = network.inputDescription();
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
          .size = {.height = pictures.height, .width = pictures.width}};
}

PicturePredictions PictureModel::predict(const std::filesystem::path& path) {
  PicturePredictions result{.names = description().classes};
  const auto paths = pathsOf(path, result.files);
  const auto& pictures = *description().pictures;
  const Shape shape{pictures.channels, pictures.height, pictures.width};
  const std::size_t classes = result.names.size();
  result.probabilities =
      Tensor::empty({static_cast<std::int64_t>(paths.size()), static_cast<std::int64_t>(classes)});
  float* row = result.probabilities.data<float>();
  for (std::size_t begin = 0; begin < paths.size(); begin += kBatch) {
    const std::size_t count = std::min(kBatch, paths.size() - begin);
    Tensor batch = Tensor::empty(shape.prepend(static_cast<std::int64_t>(count)), DType::UInt8);
    inParallel(count, [&](std::size_t i) {
      const Tensor picture = readPicture(paths[begin + i], options());
      std::ranges::copy(picture.span<std::uint8_t>(), batch.data<std::uint8_t>() + i * picture.bytes());
    });
    const Tensor outputs = network_->output(batch);
    const float* value = outputs.data<float>();
    for (std::size_t i = 0; i < count; ++i, row += classes) {
      if (outputs.shape()[1] == 1) {  // one sigmoid: the second class
        row[0] = 1 - *value;
        row[1] = *value++;
      } else {
        std::copy_n(value, classes, row);
        value += classes;
      }
      result.classes.push_back(
          result.names[static_cast<std::size_t>(std::max_element(row, row + classes) - row)]);
    }
  }
  return result;
}

}  // namespace muster
