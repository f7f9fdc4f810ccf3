#include "tensor_list.h"

#include <pybind11/stl.h>

namespace holdfast::python {

namespace py = pybind11;

TensorList::TensorList(const py::list& items) {
  held_.reserve(items.size());
  tensors_.reserve(items.size());
  for (const py::handle& each : items) {
    const auto tensor = py::cast<py::tuple>(each);
    const py::buffer_info& info = held_.emplace_back(py::cast<py::buffer>(tensor[3]).request());
    const auto size = static_cast<std::size_t>(info.size * info.itemsize);
    tensors_.push_back({.name = py::cast<std::string>(tensor[0]),
                        .dtype = py::cast<std::string>(tensor[1]),
                        .shape = py::cast<std::vector<std::uint64_t>>(tensor[2]),
                        .bytes = BytesView(static_cast<const std::byte*>(info.ptr), size)});
  }
}

}  // namespace holdfast::python
