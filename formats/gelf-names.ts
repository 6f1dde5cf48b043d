// Names of OCSF attributes that hold numbers. Graylog's index gives a field the type of its first
// value and rejects events with another one, so a name must always have one type.

/** Attributes of OCSF 1.8.0 whose type is a number; a test compares them with the schema. */
const numberNames: ReadonlySet<string> = new Set(
  (
    'access_mask accessed_time account_switch_type_id action_id activity_id alert algorithm_id ' +
    'attributes auth_protocol_id base_score body_length boot_time boundary_id bus_type_id bytes ' +
    'bytes_in bytes_missed bytes_out category_uid chunks chunks_in chunks_out class_uid code ' +
    'color_depth confidence_id confidence_score confidentiality_id cores count ' +
    'cpu_architecture_id cpu_bits cpu_cores cpu_count cpu_speed created_time deleted_time ' +
    'direction_id disposition_id drive_type_id duration duration_days duration_hours ' +
    'duration_mins duration_months duration_secs duration_weeks duration_years encoding_id ' +
    'end_column end_line end_offset end_time epoch expiration_time exploit_last_seen_time ' +
    'factor_type_id first_seen_time fix_coverage_id format_id function_keys gpu_count ' +
    'handshake_dur hire_time idle_timeout impact_id impact_score install_state_id integrity_id ' +
    'key_length keyboard_subtype last_login_time last_run_time last_seen_time last_used_time lat ' +
    'latency leave_time length logged_time logon_type_id long modified_time network_scope_id ' +
    'next_run_time num_files num_infected num_volumes number observation_point_id overall_score ' +
    'packet_uid packets packets_in packets_out percentile phase_id physical_height ' +
    'physical_orientation physical_width pid port prev_security_level_id priority_id ' +
    'processed_time protocol_num protocol_ver_id ptid query_language_id query_time ram_size ' +
    'rate_limit raw_data_size rcode_id related_events_count response_time risk_level_id ' +
    'risk_score role_id run_state_id scale_factor score_id security_level_id sequence ' +
    'sequence_number severity_id size source_id sp_ver start_column start_line start_offset ' +
    'start_time state_id status_id subnet_prefix tcp_flags terminated_time time timezone_offset ' +
    'transmit_time ttl tunnel_type_id type_id type_uid unique_malware_count untruncated_size ' +
    'verdict_id vram_mode_id vram_size'
  ).split(' '),
);

/** OCSF objects whose names and types are the source's own. */
const freeNames: ReadonlySet<string> = new Set([
  'unmapped',
  'data',
  'scim_group_schema',
  'scim_user_schema',
]);

/** Whether the last name of a path holds numbers, and only numbers. */
export function isNumberName(name: string): boolean {
  return numberNames.has(name);
}

/** Whether a name's members have unbounded names of their own. */
export function isFreeName(name: string): boolean {
  return freeNames.has(name);
}
