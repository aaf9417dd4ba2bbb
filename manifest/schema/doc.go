// Package schema gives the JSON Schema of the documents that package manifest
// reads, for editors and for checks in other languages. It is made from the
// fields as manifest describes them, and says nothing of its own.
//
// The schema is as strict as the decoder about names and types, and knows less:
// the shapes of texts and what holds between fields are manifest.Decode's
// business. What decodes without errors fits the schema, but for values that
// YAML lets one write in more than one way, as a quoted number.
//
// It may import manifest alone.
package schema
