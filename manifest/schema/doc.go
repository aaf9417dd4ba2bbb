// Package schema generates the JSON Schema of the documents that package manifest decodes, for
// editors and for validation in other languages. Its only source is manifest.Field.
//
// The schema is as strict as the decoder about names and types. Only manifest.Decode checks the
// formats of texts and rules between fields. A document that decodes without errors matches the
// schema, except for values that YAML can represent in several ways, such as a quoted number.
//
// It may import manifest alone.
package schema
