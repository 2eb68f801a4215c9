#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/random.h"
#include "muster/core/data/data_set_iterator.h"

namespace muster {

/// An image [channels, height, width] of elements of `elementBytes` each, row-major. A transform moves
/// elements or writes zeros; it does not know their type.
struct ImageView {
  std::int64_t channels = 1, height = 1, width = 1;
  std::size_t elementBytes = 1;
};

/// Shifts an image by up to `padding` pixels in each direction, uniformly, and fills the border with zeros:
/// equal to a random crop of the zero-padded image. Source: Lee et al. 2015, "Deeply-supervised nets", and He
/// et al. 2016, "Deep residual learning", for CIFAR-10.
struct RandomCrop {
  static constexpr std::string_view kType = "random-crop";

  std::int64_t padding = 4;

  /// @param position  of the example in its epoch.
  void apply(const ImageView& view, const std::byte* from, std::byte* to, const RandomStream& random,
             std::uint64_t position) const;
  void validate() const;
};

/// Mirrors an image left to right, with a probability.
struct RandomFlip {
  static constexpr std::string_view kType = "random-flip";

  double probability = 0.5;

  void apply(const ImageView& view, const std::byte* from, std::byte* to, const RandomStream& random,
             std::uint64_t position) const;
  void validate() const;
};

/// An option struct that is a transform of images. `apply` writes all of `to`, and keys its random numbers by
/// `position` only.
template <typename T>
concept ImageTransformRule = requires(const T& rule, const ImageView& view, const std::byte* from,
                                      std::byte* to, const RandomStream& random, std::uint64_t position) {
  { T::kType } -> std::convertible_to<std::string_view>;
  rule.apply(view, from, to, random, position);
  rule.validate();
};

/// Any transform: `RandomCrop{.padding = 2}`, or your own. A value.
class ImageTransform {
 public:
  template <ImageTransformRule T>
  ImageTransform(const T& rule)  // NOLINT(google-explicit-constructor): a rule is a transform
      : rule_(std::make_shared<const RuleOf<T>>(rule)) {}

  std::string_view type() const { return rule_->type(); }
  void apply(const ImageView& view, const std::byte* from, std::byte* to, const RandomStream& random,
             std::uint64_t position) const {
    rule_->apply(view, from, to, random, position);
  }
  /// @throws InvalidArgument naming the option.
  void validate() const { rule_->validate(); }

 private:
  class Rule {
   public:
    virtual ~Rule() = default;
    virtual std::string_view type() const = 0;
    virtual void apply(const ImageView& view, const std::byte* from, std::byte* to,
                       const RandomStream& random, std::uint64_t position) const = 0;
    virtual void validate() const = 0;
  };
  template <typename T>
  class RuleOf final : public Rule {
   public:
    explicit RuleOf(T rule) : rule_(std::move(rule)) {}
    std::string_view type() const override { return T::kType; }
    void apply(const ImageView& view, const std::byte* from, std::byte* to, const RandomStream& random,
               std::uint64_t position) const override {
      rule_.apply(view, from, to, random, position);
    }
    void validate() const override { rule_.validate(); }

   private:
    T rule_;
  };

  std::shared_ptr<const Rule> rule_;
};

/// Gives the batches of another iterator with all transforms applied to each image, in order. Types and
/// shapes do not change; bytes stay bytes.
///
/// The random numbers of an image depend on the seed, the transform (its type and its position in the list),
/// the epoch and the example's position in the epoch, and not on batch size, workers or prefetch. So any
/// epoch can be resumed.
class TransformingIterator : public DataSetIterator {
 public:
  /// @param inner       its first features are [N, C, H, W], float32 or uint8; must outlive this object and
  ///         must not be used otherwise meanwhile.
  /// @param transforms  at least one.
  /// @throws InvalidArgument for an invalid transform.
  TransformingIterator(DataSetIterator& inner, std::vector<ImageTransform> transforms, std::uint64_t seed);

  void reset(std::int64_t epoch) override;
  /// @throws InvalidArgument for features of another rank; that batch is lost, and the next call continues
  ///         after it.
  bool next(Batch& batch) override;
  std::int64_t skip(std::int64_t batches) override;
  bool readsToSkip() const override { return inner_.readsToSkip(); }
  const DataSetIterator* inner() const override { return &inner_; }
  std::optional<std::int64_t> examples() const override { return inner_.examples(); }
  std::optional<std::int64_t> batchSize() const override { return inner_.batchSize(); }

 private:
  void beginEpoch(std::int64_t epoch);

  DataSetIterator& inner_;
  std::vector<ImageTransform> transforms_;
  std::uint64_t seed_;
  std::vector<RandomStream> streams_;  // [transform], of the epoch
  std::uint64_t position_ = 0;         // in the epoch, of the next example
  std::vector<std::byte> image_;       // a copy of the image, because its memory is overwritten
};

}  // namespace muster
