#include "store/tensor_data.h"

#include <string_view>
#include <utility>

#include "store/dtype.h"

namespace holdfast::store {

Result<SafetensorsHeader> lay_out(std::span<const TensorData> tensors, std::map<std::string, std::string> metadata) {
  std::vector<TensorInfo> infos;
  infos.reserve(tensors.size());
  for (const TensorData& tensor : tensors) infos.push_back({tensor.name, tensor.dtype, tensor.shape});
  return lay_out_tensors(std::move(infos), std::move(metadata));
}

Result<std::vector<const TensorData*>> in_order(const SafetensorsHeader& header, std::span<const TensorData> tensors) {
  std::map<std::string_view, const TensorData*> by_name;
  for (const TensorData& tensor : tensors) by_name.emplace(tensor.name, &tensor);
  std::vector<const TensorData*> ordered;
  ordered.reserve(tensors.size());
  for (const TensorInfo& info : header.tensors) {
    const TensorData* tensor = by_name.at(info.name);
    if (tensor->bytes.size() != info.end - info.begin) {
      return Error(Code::BadInput, "tensor " + info.name + " of shape " + shape_text(info.shape) + " and " +
                                       info.dtype + " needs " + std::to_string(info.end - info.begin) + " bytes, but " +
                                       std::to_string(tensor->bytes.size()) + " were given");
    }
    ordered.push_back(tensor);
  }
  return ordered;
}

}  // namespace holdfast::store
