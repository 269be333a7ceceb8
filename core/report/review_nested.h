#pragma once
#include <string_view>

namespace sheaf {

/// What the script of the page for the person who checks values does with objects and lists of objects.
inline constexpr std::string_view kNestedScript = R"js(
const plainTypes = {
  number: ['a number without quotes', value => typeof value === 'number'],
  boolean: ['true or false', value => typeof value === 'boolean'],
  date: ['a date such as "2026-03-31"', value => typeof value === 'string' && /^[1-9]\d{3}-\d{2}-\d{2}$/.test(value)],
  list: ['a list of texts', value => Array.isArray(value) && value.every(part => typeof part === 'string')],
  text: ['a text in quotes', value => typeof value === 'string'],
};

// Why a value is none of the attribute, with its place; nothing where it is one.
function misfitWithin(field, value, path) {
  if (value === null) return '';
  if (field.type === 'entries') {
    if (!Array.isArray(value)) return `${path}: give a list of objects, [{…}, {…}], or null.`;
    for (const [i, entry] of value.entries()) {
      if (entry === null) return `${path}[${i}]: an entry cannot be null; leave it out.`;
      const mistake = misfitWithin({...field, type: 'object'}, entry, `${path}[${i}]`);
      if (mistake) return mistake;
    }
    return '';
  }
  if (field.type === 'object') {
    if (typeof value !== 'object' || Array.isArray(value)) return `${path}: give an object, {…}, or null.`;
    for (const [key, inner] of Object.entries(value)) {
      const known = field.fields.find(each => each.name === key);
      if (!known) return `${path} has no key "${key}"; its keys are ${field.fields.map(each => each.name).join(', ')}.`;
      const mistake = misfitWithin(known, inner, `${path}.${key}`);
      if (mistake) return mistake;
    }
    return '';
  }
  if (field.type === 'enum')
    return field.options.includes(value) ? '' : `${path}: give one of ${field.options.map(option => `"${option}"`).join(', ')}, or null.`;
  const [wanted, fits] = plainTypes[field.type];
  return fits(value) ? '' : `${path}: give ${wanted}, or null.`;
}

function misfit(item, text) {
  if (text.trim() === '') return '';
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `This is not JSON: ${error.message}`;
  }
  return misfitWithin({...item, name: item.attribute}, value, item.attribute);
}
)js";

}  // namespace sheaf
