// Faults that alter the content or number of records, in a page or a single object: added, renamed or volatile fields,
// changed content, missing records.
import type { Content, SandboxPage } from './answers.ts';
import type { SandboxFault } from './faults.ts';

/** A record's altered text, or null if it is dropped. `at` counts the page's records. */
type Edit = (text: string, at: number) => string | null;

/** The altered content, or null if the fault alters no records. */
export function editedContent(
  fault: SandboxFault,
  content: Content,
  nowMs: number,
): Content | null {
  const edit = editOf(fault, nowMs);
  if (edit === null) return null;
  if (content.form === 'page') return { form: 'page', page: editedPage(content.page, edit) };
  return content.form === 'json' ? { form: 'json', text: edit(content.text, 0) ?? '' } : content;
}

/** A page with other records and everything else unchanged. */
export function withItems(page: SandboxPage, items: readonly string[]): SandboxPage {
  return { ...page, items: () => items, joined: () => Buffer.from(items.join(',')) };
}

function editedPage(page: SandboxPage, edit: Edit): SandboxPage {
  const items = page.items().flatMap((item, at) => edit(item, at) ?? []);
  return withItems(page, items);
}

function editOf(fault: SandboxFault, nowMs: number): Edit | null {
  switch (fault.kind) {
    case 'extra_field':
      return (text) => withMember(text, 'schema_version', '"2.1"');
    case 'volatile_field':
      return (text) => withMember(text, 'last_seen', JSON.stringify(new Date(nowMs).toISOString()));
    case 'renamed_field':
      return (text) =>
        text.replaceAll(`${JSON.stringify(fault.field)}:`, `${JSON.stringify(fault.to)}:`);
    case 'altered': {
      const { record = 0, field = 'description', value = 'altered' } = fault;
      const setTo = (text: string) => JSON.stringify({ ...JSON.parse(text), [field]: value });
      return (text, at) => (at === record ? setTo(text) : text);
    }
    case 'missing_record':
      return (text, at) => (at === (fault.record ?? 0) ? null : text);
    default:
      return null;
  }
}

// Spliced as text, so the rest of the record stays byte for byte.
function withMember(text: string, name: string, value: string): string {
  return text.endsWith('}') ? `${text.slice(0, -1)},"${name}":${value}}` : text;
}
